import type { ServerResponse } from 'node:http';
import { BadRequestError, type OpenAI } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { openai, Recorder } from './sdks.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** Handler of the provider's next request. */
let script: (request: SeenRequest, response: ServerResponse) => void;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => script(request, response));
  gateway = await startGateway({
    channels: [
      ...(['chat-completions', 'messages', 'generate-content'] as const).map((format) =>
        demo({
          id: format,
          speaks: [format],
          models: { [format]: 'demo', [`${format}-thinks`]: 'demo-thinking' },
        }),
      ),
      openaiChannel({
        key: 'channel-key-0123456789',
        baseUrl: `${upstream.url}/v1`,
        models: { 'davinci-002': 'davinci-002', mine: 'gpt-3.5-turbo-instruct-0914' },
      }),
    ],
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  upstream.requests.length = 0;
});

/** The text of each answer of a stream, the reasons why they ended, and the last usage. */
async function read(stream: AsyncIterable<OpenAI.Completion>) {
  const texts: string[] = [];
  const finishes: unknown[] = [];
  let usage: OpenAI.CompletionUsage | undefined;
  for await (const chunk of stream) {
    expect(chunk).toMatchObject({ object: 'text_completion', id: expect.stringMatching(/^cmpl-/) });
    for (const { index, text, finish_reason: finish } of chunk.choices) {
      texts[index] = (texts[index] ?? '') + text;
      // The SDK's type leaves out that only the last chunk has one.
      if ((finish as string | null) !== null) finishes[index] = finish;
    }
    usage = chunk.usage ?? usage;
  }
  return { texts, finishes, usage };
}

describe.each(['chat-completions', 'messages', 'generate-content'])('over a channel of %s', (model) => {
  test('a prompt is answered, whole', async () => {
    const reply = await openai(gateway).completions.create({ model, prompt: 'Good day', max_tokens: 50 });
    expect(reply).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: 'text_completion',
      model,
      choices: [{ index: 0, text: 'You said: Good day', logprobs: null, finish_reason: 'stop' }],
      usage: { total_tokens: (reply.usage?.prompt_tokens ?? 0) + (reply.usage?.completion_tokens ?? 0) },
    });
    expect(reply.usage?.completion_tokens).toBeGreaterThan(0);
  });

  test('a prompt is answered, streamed, with its echo and usage', async () => {
    const stream = await openai(gateway).completions.create({
      model,
      prompt: 'Good day',
      echo: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    const { texts, finishes, usage } = await read(stream);
    expect(texts).toEqual(['Good dayYou said: Good day']);
    expect(finishes).toEqual(['stop']);
    expect(usage?.completion_tokens).toBeGreaterThan(0);
  });

  test('a list of prompts is answered in one reply, streamed as well', async () => {
    const prompt = ['one', 'two'];
    const reply = await openai(gateway).completions.create({ model, prompt });
    expect(reply.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'You said: one'],
      [1, 'You said: two'],
    ]);
    const stream = await openai(gateway).completions.create({ model, prompt, stream: true });
    expect(await read(stream)).toMatchObject({
      texts: ['You said: one', 'You said: two'],
      finishes: ['stop', 'stop'],
    });
  });

  test('nothing is sent that the client did not write: no 16 tokens', async () => {
    const reply = await openai(gateway).completions.create({ model, prompt: 'word '.repeat(40) });
    expect(reply.choices[0]?.finish_reason).toBe('stop');
    const short = await openai(gateway).completions.create({
      model,
      prompt: 'word '.repeat(40),
      max_tokens: 4,
    });
    expect(short.choices[0]?.finish_reason).toBe('length');
  });

  test('what it cannot carry is named, and what it cannot do is 400', async () => {
    const recorder = new Recorder();
    const client = openai(gateway, { recorder });
    await client.completions.create({ model, prompt: 'Hi', logit_bias: { '50256': -100 } });
    expect(recorder.last.headers.get('x-sluice-loss')).toMatch(/\blogit_bias\b/);
    const impossible: [string, Partial<OpenAI.CompletionCreateParamsNonStreaming>][] = [
      ['suffix', { suffix: 'end' }],
      ['best_of', { best_of: 3 }],
      ['logprobs', { logprobs: 1 }],
      ['prompt', { prompt: [1, 2, 3] }],
      ['prompt', { prompt: [[1], [2]] }],
    ];
    for (const [param, more] of impossible) {
      const failure: unknown = await client.completions
        .create({ model, prompt: 'Hi', ...more })
        .catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(BadRequestError);
      expect(failure).toMatchObject({ param, code: 'unsupported_parameter', type: 'invalid_request_error' });
    }
  });
});

test('reasoning is no part of a text completion', async () => {
  for (const model of ['messages-thinks', 'generate-content-thinks']) {
    const reply = await openai(gateway).completions.create({ model, prompt: 'Hi' });
    expect(reply.choices).toMatchObject([{ text: 'You said: Hi' }]);
  }
});

test('a provider that breaks off is an error in the stream', async () => {
  const stream = await openai(gateway).completions.create({
    model: 'messages',
    prompt: 'Hi there !cut-after=5',
    stream: true,
  });
  await expect(read(stream)).rejects.toThrow('closed the connection before the response was complete');
});

describe('a channel that completes text', () => {
  const whole = (model: string): string =>
    `{ "id": "cmpl-1", "object":"text_completion", "created": 1760000000.0, "model": "${model}", "x_future": {"n": 1.0},\n "choices": [{"text":"Gr\\u00fc\\u00dfe","index":0,"logprobs":null,"finish_reason":"stop","x_mood":"good"}],
 "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "x_cost": 1e-5} }\n`;
  const frames = (model: string): string =>
    ['"Hel",null', '"lo",null', '"","length"']
      .map((piece) => {
        const [text, finish] = piece.split(',');
        return `data: {"id":"cmpl-1","object":"text_completion","created":1760000000,"model":"${model}","choices":[{"text":${text},"index":0,"logprobs":null,"finish_reason":${finish}}]}\n\n`;
      })
      .join('') + 'data: [DONE]\n\n';

  test('gets the bytes of the client and gives back its own', async () => {
    script = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(whole('davinci-002'));
    const body = '{"prompt" :[1212, 318], "model":"davinci-002","best_of":3,\n"logprobs":2,"x":1.0}';
    const response = await fetch(`${gateway.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body,
    });
    expect(await response.text()).toBe(whole('davinci-002'));
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.url).toBe('/v1/completions');
    expect(upstream.requests[0]?.body.toString()).toBe(body);
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer channel-key-0123456789');
  });

  test('streams to the SDK under the name that the client asked for', async () => {
    script = (_request, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(frames('gpt-3.5-turbo-instruct-0914'));
    const recorder = new Recorder();
    const stream = await openai(gateway, { recorder }).completions.create({
      model: 'mine',
      prompt: 'Say hello',
      suffix: '!',
      stream: true,
    });
    expect(await read(stream)).toMatchObject({ texts: ['Hello'], finishes: ['length'] });
    expect((await recorder.last.body).toString()).toBe(frames('mine'));
    expect(JSON.parse(String(upstream.requests[0]?.body))).toEqual({
      model: 'gpt-3.5-turbo-instruct-0914',
      prompt: 'Say hello',
      suffix: '!',
      stream: true,
      // Whoever counts what was used asks for it; the client does not see the chunk.
      stream_options: { include_usage: true },
    });
  });

  test('refuses in the words of its provider', async () => {
    script = (_request, response) =>
      void response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(
          '{"error":{"message":"max_tokens is too large","type":"invalid_request_error","param":"max_tokens"}}',
        );
    const failure: unknown = await openai(gateway)
      .completions.create({ model: 'mine', prompt: 'Hi', max_tokens: 100_000 })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BadRequestError);
    expect((failure as Error).message).toContain('max_tokens is too large');
  });

  test('answers a client of chat that writes one turn of text, and no more than that', async () => {
    script = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(whole('x'));
    const client = openai(gateway);
    const reply = await client.chat.completions.create({
      model: 'mine',
      messages: [{ role: 'user', content: 'Say hello' }],
      max_completion_tokens: 9,
    });
    expect(reply.choices[0]?.message.content).toBe('Grüße');
    expect(reply.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2 });
    expect(JSON.parse(String(upstream.requests[0]?.body))).toEqual({
      model: 'gpt-3.5-turbo-instruct-0914',
      prompt: 'Say hello',
      max_tokens: 9,
    });
    const failure: unknown = await client.chat.completions
      .create({
        model: 'mine',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
        ],
      })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BadRequestError);
    expect(failure).toMatchObject({ param: 'messages[0]', code: 'unsupported_content' });
  });
});
