import type { ServerResponse } from 'node:http';
import type { GenerateContentResponse } from '@google/genai';
import type OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { definePlugin } from '../../core/sdk/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { anthropic, formats, genai, olderAnthropic, openai, Recorder, type FormatName } from './sdks.ts';

/** Key of the channel, which differs from the client's key. */
const channelKey = 'channel-key-0123456789';

/** Each provider serves two models, one of them under a name of its own. */
const endpointFor = (format: FormatName) => ({
  id: format,
  key: channelKey,
  models: {
    [`native-${format}`]: `native-${format}`,
    [`renamed-${format}`]: `name-at-the-provider-${format}`,
  },
});

/** Wants to know what every stream used, as a metering plugin does: no reason to touch anything else. */
const counting = definePlugin({
  name: 'counting',
  stage: 'observe',
  reads: 'usage',
  setup() {
    return function counts(call, next) {
      return next(call);
    };
  },
});

let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** Handler of the provider's next request. */
let script: (request: SeenRequest, response: ServerResponse) => void | Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => script(request, response));
  gateway = await startGateway({
    plugins: [counting()],
    channels: [
      openaiChannel({ ...endpointFor('chat-completions'), baseUrl: `${upstream.url}/v1` }),
      anthropicChannel({ ...endpointFor('messages'), baseUrl: `${upstream.url}/v1` }),
      geminiChannel({ ...endpointFor('generate-content'), baseUrl: `${upstream.url}/v1beta` }),
      openaiChannel({
        ...endpointFor('responses'),
        baseUrl: `${upstream.url}/v1`,
        traits: { '*': { formats: ['responses'] } },
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

/** The one request that the provider has seen. */
function seen(): SeenRequest {
  expect(upstream.requests).toHaveLength(1);
  return upstream.requests[0] as SeenRequest;
}

/** Answers with these bytes, in pieces of this size. */
function answers(
  bytes: string | Buffer,
  contentType: string,
  piece = Number.POSITIVE_INFINITY,
): typeof script {
  return async (_request, response) => {
    const all = Buffer.from(bytes);
    response.writeHead(200, {
      'content-type': contentType,
      'x-ratelimit-remaining-requests': '7',
      'anthropic-organization-id': 'org-of-the-operator',
      'openai-organization': 'org-of-the-operator',
      'set-cookie': 'operator=1',
    });
    for (let at = 0; at < all.length; at += piece) {
      response.write(all.subarray(at, Math.min(all.length, at + piece)));
      if (piece < all.length) await new Promise((done) => setImmediate(done));
    }
    response.end();
  };
}

/* ---- what the providers say, with fields of tomorrow and odd but legal spelling ---- */

const wholes: Readonly<Record<FormatName, (model: string) => string>> = {
  'chat-completions': (model) =>
    `{ "id": "chatcmpl-1", "object":"chat.completion",\n "created": 1760000000.0, "model": "${model}", "x_future": {"big": 12345678901234567890, "n": 1.0},
 "choices": [{"index":0,"message":{"role":"assistant","content":"Gr\\u00fc\\u00dfe \\"model\\": 世界","x_mood":"good"},"finish_reason":"stop"}],
 "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "x_cost": 1e-5} }\n`,
  messages: (model) =>
    `{"x_first":true, "id":"msg_1","type":"message","role":"assistant", "model":"${model}","content":[{"type":"text","text":"Gr\\u00fc\\u00dfe 世界","x_mood":"good"},{"type":"x_future_block","payload":{"n":1.0}}],"stop_reason":"end_turn","stop_sequence":null,
"usage":{"input_tokens":3,"output_tokens":2,"x_cost":1e-5}}`,
  'generate-content': (model) =>
    `{\n  "candidates": [{"content": {"role": "model", "parts": [{"text": "Gr\\u00fc\\u00dfe 世界", "xMood": "good"}, {"xFuturePart": {"n": 1.0}}]}, "finishReason": "STOP", "index": 0}],
  "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5, "xCost": 1e-5}, "modelVersion": "${model}", "responseId": "r1"\n}\n`,
  responses: (model) =>
    `{ "id": "resp_1", "object":"response",\n "created_at": 1760000000.0, "status":"completed", "model": "${model}", "x_future": {"big": 12345678901234567890, "n": 1.0},
 "output": [{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Gr\\u00fc\\u00dfe \\"model\\": 世界","annotations":[],"x_mood":"good"}]},{"id":"x_1","type":"x_future_item","n":1.0}],
 "usage": {"input_tokens": 3, "input_tokens_details":{"cached_tokens":0}, "output_tokens": 2, "output_tokens_details":{"reasoning_tokens":0}, "total_tokens": 5, "x_cost": 1e-5} }\n`,
};

const streams: Readonly<Record<FormatName, (model: string) => string>> = {
  'chat-completions': (model) => {
    const chunk = (delta: string, finish = 'null'): string =>
      `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000.0,"model":"${model}","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}`;
    return [
      ': a greeting of the proxy in between\n\n',
      `data: ${chunk('{"role":"assistant","content":"","x_mood":"good"}')}\n\n`,
      `data:${chunk('{"content":"Gr\\u00fc\\u00dfe "}')}\r\n\r\n`,
      `id: 7\nretry: 10\ndata: ${chunk('{"content":"世界 🌍"}')}\n\n`,
      'data: {"object":"x.future","choices":[],"x_future":{"n":1.0}}\n\n',
      `data: ${chunk('{"content":"!"}').replace('"choices"', '\ndata: "choices"')}\n\n`,
      `data: ${chunk('{}', '"stop"')}\n\n`,
      `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"${model}","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"x_cost":1e-5}}\n\n`,
      'data: [DONE]\n\n',
    ].join('');
  },
  messages: (model) =>
    [
      `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}\n\n`,
      'event: ping\ndata: {"type": "ping"}\n\n',
      ': a comment\n\n',
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","x_mood":"good"}}\n\n',
      'event: content_block_delta\r\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Gr\\u00fc\\u00dfe "}}\r\n\r\n',
      'event: x_future_event\ndata: {"type":"x_future_event","n":1.0}\n\n',
      'event:content_block_delta\nid: 7\ndata:{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"世界 🌍!"}}\n\n',
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2,"x_cost":1e-5}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ].join(''),
  'generate-content': (model) =>
    [
      `data: {"candidates": [{"content": {"role": "model","parts": [{"text": "Gr\\u00fc\\u00dfe ", "xMood": "good"}]},"index": 0}],"modelVersion": "${model}","responseId": "r1"}\r\n\r\n`,
      `data: {"xFuture": {"n": 1.0},"modelVersion": "${model}"}\r\n\r\n`,
      `data: {"candidates": [{"content": {"role": "model","parts": [{"text": "世界 🌍!"}]},"index": 0}],"modelVersion": "${model}","responseId": "r1"}\r\n\r\n`,
      `data: {"candidates": [{"content": {"role": "model","parts": []},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 3,"candidatesTokenCount": 2,"totalTokenCount": 5,"xCost": 1e-5},"modelVersion": "${model}","responseId": "r1"}\r\n\r\n`,
    ].join(''),
  responses: (model) => {
    const response = (status: string, more: string): string =>
      `{"id":"resp_1","object":"response","created_at":1760000000.0,"status":"${status}","model":"${model}","tools":[],${more}}`;
    const item = (status: string, content: string): string =>
      `{"id":"msg_1","type":"message","status":"${status}","role":"assistant","content":[${content}]}`;
    const part = (text: string): string =>
      `{"type":"output_text","text":"${text}","annotations":[],"x_mood":"good"}`;
    const delta = (text: string, number: number): string =>
      `{"type":"response.output_text.delta","sequence_number":${number},"item_id":"msg_1","output_index":0,"content_index":0,"delta":"${text}","logprobs":[]}`;
    return [
      `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":${response('in_progress', '"output":[],"usage":null')}}\n\n`,
      ': a greeting of the proxy in between\n\n',
      `event: response.output_item.added\r\ndata: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":${item('in_progress', '')}}\r\n\r\n`,
      `event:response.content_part.added\nid: 7\ndata:{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":${part('')}}\n\n`,
      `event: response.output_text.delta\ndata: ${delta('Gr\\u00fc\\u00dfe ', 3)}\n\n`,
      'event: response.x_future\ndata: {"type":"response.x_future","sequence_number":4,"n":1.0}\n\n',
      `event: response.output_text.delta\ndata: ${delta('世界 🌍!', 5)}\n\n`,
      `event: response.output_text.done\ndata: {"type":"response.output_text.done","sequence_number":6,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Grüße 世界 🌍!","logprobs":[]}\n\n`,
      `event: response.content_part.done\ndata: {"type":"response.content_part.done","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"part":${part('Grüße 世界 🌍!')}}\n\n`,
      `event: response.output_item.done\ndata: {"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":${item('completed', part('Grüße 世界 🌍!'))}}\n\n`,
      `event: response.completed\ndata: {"type":"response.completed","sequence_number":9,"response":${response('completed', `"output":[${item('completed', part('Grüße 世界 🌍!'))}],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5,"x_cost":1e-5}`)}}\n\n`,
    ].join('');
  },
};

/** One whole and one streamed request through the SDK of each format, with fields and flags that no gateway knows. */
const asks: Readonly<
  Record<
    FormatName,
    {
      whole(model: string, recorder: Recorder): Promise<string>;
      stream(model: string, recorder: Recorder): Promise<string>;
    }
  >
> = {
  'chat-completions': {
    async whole(model, recorder) {
      const client = openai(gateway, { recorder, headers: { 'openai-beta': 'future=v9' } });
      const completion = await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Grüße', x_note: [1, { deep: null }] } as never],
        seed: 7,
        logit_bias: { '50256': -100 },
        x_future: { keep: ['order', 2, 1] },
      } as never);
      return completion.choices[0]?.message.content ?? '';
    },
    async stream(model, recorder) {
      const stream = openai(gateway, { recorder }).chat.completions.stream({
        model,
        messages: [{ role: 'user', content: 'Grüße' }],
        stream_options: { include_usage: true, include_obfuscation: false },
        x_future: { keep: ['order', 2, 1] },
      } as never);
      const completion = await stream.finalChatCompletion();
      expect(completion.usage).toMatchObject({ total_tokens: 5 });
      return completion.choices[0]?.message.content ?? '';
    },
  },
  messages: {
    async whole(model, recorder) {
      const message = await anthropic(gateway, { recorder }).beta.messages.create({
        model,
        max_tokens: 100,
        betas: ['context-1m-2025-08-07', 'x-future-2027-01-01'],
        messages: [
          {
            role: 'user',
            content: [{ type: 'text', text: 'Grüße', cache_control: { type: 'ephemeral', ttl: '1h' } }],
          },
        ],
        context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
        x_future: { keep: ['order', 2, 1] },
      } as never);
      return textOf((message as unknown as { content: { type: string; text?: string }[] }).content);
    },
    async stream(model, recorder) {
      const stream = anthropic(gateway, { recorder }).messages.stream({
        model,
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Grüße' }],
        x_future: { keep: ['order', 2, 1] },
      } as never);
      return textOf((await stream.finalMessage()).content);
    },
  },
  'generate-content': {
    async whole(model, recorder) {
      const response = await genai(gateway, { recorder }).models.generateContent({
        model,
        contents: 'Grüße',
        config: {
          labels: { team: 'a' },
          safetySettings: [
            { category: 'HARM_CATEGORY_HARASSMENT' as never, threshold: 'BLOCK_NONE' as never },
          ],
          httpOptions: { extraBody: { xFuture: { keep: ['order', 2, 1] } } },
        },
      });
      return words(response);
    },
    async stream(model, recorder) {
      let text = '';
      const stream = await genai(gateway, { recorder, apiVersion: 'v1beta' }).models.generateContentStream({
        model,
        contents: 'Grüße',
        config: { httpOptions: { extraBody: { xFuture: { keep: ['order', 2, 1] } } } },
      });
      for await (const chunk of stream) text += words(chunk);
      return text;
    },
  },
  responses: {
    async whole(model, recorder) {
      const client = openai(gateway, { recorder, headers: { 'openai-beta': 'future=v9' } });
      const response = await client.responses.create({
        model,
        input: [{ role: 'user', content: 'Grüße', x_note: [1, { deep: null }] }],
        tools: [{ type: 'x_future_tool', keep: true }],
        x_future: { keep: ['order', 2, 1] },
      } as never);
      return response.output_text;
    },
    async stream(model, recorder) {
      // The SDK's stream helper raises on events of tomorrow: whoever wants them reads the stream itself.
      const stream = (await openai(gateway, { recorder }).responses.create({
        model,
        input: 'Grüße',
        store: false,
        stream: true,
        stream_options: { include_obfuscation: false },
        x_future: { keep: ['order', 2, 1] },
      } as never)) as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>;
      let text = '';
      for await (const event of stream) {
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (event.type === 'response.completed')
          expect(event.response.usage).toMatchObject({ total_tokens: 5 });
      }
      return text;
    },
  },
};

function textOf(content: readonly { readonly type: string; readonly text?: string }[]): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/** The SDK's own `text` warns about parts that it does not know. */
function words({ candidates }: GenerateContentResponse): string {
  return (candidates?.[0]?.content?.parts ?? []).map(({ text }) => text ?? '').join('');
}

const paths: Readonly<Record<FormatName, { whole: string; stream: string }>> = {
  'chat-completions': { whole: '/v1/chat/completions', stream: '/v1/chat/completions' },
  messages: { whole: '/v1/messages', stream: '/v1/messages' },
  'generate-content': {
    whole: '/v1beta/models/MODEL:generateContent',
    stream: '/v1beta/models/MODEL:streamGenerateContent',
  },
  responses: { whole: '/v1/responses', stream: '/v1/responses' },
};

describe.each(formats)('a provider of the same format: %s', (format) => {
  const model = `native-${format}`;

  test('a whole request arrives byte for byte, and its answer comes back byte for byte', async () => {
    const recorder = new Recorder();
    const answer = wholes[format](model);
    script = answers(answer, 'application/json', 50);
    const text = await asks[format].whole(model, recorder);
    expect(text).toContain('世界');
    expect(seen().body.toString()).toBe(recorder.last.requestBody);
    expect(seen().url.split('?')[0]).toBe(paths[format].whole.replace('MODEL', model));
    expect((await recorder.last.body).toString()).toBe(answer);
  });

  test('a streamed request arrives byte for byte', async () => {
    const recorder = new Recorder();
    script = answers(streams[format](model), 'text/event-stream');
    await asks[format].stream(model, recorder);
    expect(seen().body.toString()).toBe(recorder.last.requestBody);
    expect(seen().url.split('?')[0]).toBe(paths[format].stream.replace('MODEL', model));
  });

  test.each([1, 7, 1000])(
    'a stream comes back byte for byte when the provider sends it in pieces of %i bytes',
    async (piece) => {
      const recorder = new Recorder();
      const stream = streams[format](model);
      script = answers(stream, 'text/event-stream; charset=utf-8', piece);
      expect(await asks[format].stream(model, recorder)).toBe('Grüße 世界 🌍!');
      expect((await recorder.last.body).toString()).toBe(stream);
      expect(recorder.last.headers.get('content-type')).toMatch(/^text\/event-stream/);
    },
  );

  test('under another name at the provider nothing changes but the name, in the request and in the answers', async () => {
    const requestedModel = `renamed-${format}`;
    const there = `name-at-the-provider-${format}`;
    const whole = new Recorder();
    script = answers(wholes[format](there), 'application/json');
    await asks[format].whole(requestedModel, whole);
    expect(seen().body.toString()).toBe(whole.last.requestBody.replace(requestedModel, there));
    expect((await whole.last.body).toString()).toBe(wholes[format](requestedModel));
    upstream.requests.length = 0;

    const streamed = new Recorder();
    script = answers(streams[format](there), 'text/event-stream');
    await asks[format].stream(requestedModel, streamed);
    expect(seen().body.toString()).toBe(streamed.last.requestBody.replace(requestedModel, there));
    expect((await streamed.last.body).toString()).toBe(streams[format](requestedModel));
  });

  test('numbers, escapes and spaces of a body that no SDK would write stay as they are', async () => {
    const bodies: Readonly<Record<FormatName, string>> = {
      'chat-completions': `{ "x_future" : {"big":12345678901234567890,"n":1.0,"e":1E2},\n\t"messages":[{"role":"user","content":"Gr\\u00fc\\u00DFe \\/"}], "model":"${model}", "stream":true, "stream_options":{"include_usage":true} }\n`,
      messages: `{ "x_future" : {"big":12345678901234567890,"n":1.0,"e":1E2},\n\t"max_tokens":1e2,"messages":[{"role":"user","content":"Gr\\u00fc\\u00DFe \\/"}], "model":"${model}", "stream":true }\n`,
      responses: `{ "x_future" : {"big":12345678901234567890,"n":1.0,"e":1E2},\n\t"input":[{"role":"user","content":"Gr\\u00fc\\u00DFe \\/"}], "model":"${model}", "stream":true }\n`,
      'generate-content': `{ "xFuture" : {"big":12345678901234567890,"n":1.0,"e":1E2},\n\t"contents":[{"role":"user","parts":[{"text":"Gr\\u00fc\\u00DFe \\/"}]}], "generation_config":{"max_output_tokens":"100"} }\n`,
    };
    script = answers(streams[format](model), 'text/event-stream');
    const path =
      paths[format].stream.replace('MODEL', model) + (format === 'generate-content' ? '?alt=sse' : '');
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body: bodies[format],
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(streams[format](model));
    expect(seen().body.toString()).toBe(bodies[format]);
  });

  test('the client’s key, cookies and addresses never reach the provider; the channel’s key does', async () => {
    script = answers(wholes[format](model), 'application/json');
    const path = paths[format].whole.replace('MODEL', model);
    const bodies: Readonly<Record<FormatName, unknown>> = {
      'chat-completions': { model, messages: [{ role: 'user', content: 'Hi' }] },
      messages: { model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
      'generate-content': { contents: [{ parts: [{ text: 'Hi' }] }] },
      responses: { model, input: 'Hi' },
    };
    for (const credential of [
      { headers: { authorization: `Bearer ${gateway.key}` }, query: '' },
      { headers: { 'x-api-key': gateway.key }, query: '' },
      { headers: { 'x-goog-api-key': gateway.key }, query: '' },
      { headers: {}, query: `?key=${gateway.key}` },
    ]) {
      upstream.requests.length = 0;
      const response = await fetch(gateway.url + path + credential.query, {
        method: 'POST',
        headers: {
          ...(credential.headers as Record<string, string>),
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
          cookie: 'session=secret-of-the-client',
          'x-forwarded-for': '203.0.113.9',
          'cf-connecting-ip': '203.0.113.9',
          'proxy-authorization': 'Basic secret-of-the-client',
        },
        body: JSON.stringify(bodies[format]),
      });
      expect(response.status).toBe(200);
      await response.text();
      const { url, headers, body } = seen();
      const all = `${url}\n${JSON.stringify(headers)}\n${body.toString()}`;
      expect(all).toContain(channelKey);
      expect(all).not.toContain(gateway.key);
      expect(all).not.toContain('secret-of-the-client');
      expect(all).not.toContain('203.0.113.9');
    }
  });

  test('the operator’s account at the provider does not show in the answer', async () => {
    const recorder = new Recorder();
    script = answers(wholes[format](model), 'application/json');
    await asks[format].whole(model, recorder);
    const names = [...recorder.last.headers.keys()];
    expect(names).not.toContain('set-cookie');
    expect(names.filter((name) => /organization|ratelimit/.test(name))).toEqual([]);
  });

  test('an event is passed on before the next one is there', async () => {
    const stream = streams[format](model);
    // What only opens a reply waits for its first word.
    const word = stream.search(/"(?:content|text)": ?"[^"]|content_block_delta|output_text\.delta/);
    const end = /\r?\n\r?\n/.exec(stream.slice(word));
    const cut = word + (end?.index ?? 0) + (end?.[0].length ?? 0);
    const { promise: read, resolve: goOn } = Promise.withResolvers<void>();
    script = async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(stream.slice(0, cut));
      await read;
      response.end(stream.slice(cut));
    };
    const bodies: Readonly<Record<FormatName, unknown>> = {
      'chat-completions': { model, stream: true, messages: [{ role: 'user', content: 'Hi' }] },
      messages: { model, stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
      'generate-content': { contents: [{ parts: [{ text: 'Hi' }] }] },
      responses: { model, stream: true, input: 'Hi' },
    };
    const path =
      paths[format].stream.replace('MODEL', model) + (format === 'generate-content' ? '?alt=sse' : '');
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body: JSON.stringify(bodies[format]),
    });
    const reader = response.body?.getReader();
    let got = '';
    const decoder = new TextDecoder();
    while (got.length < cut) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
      if (done) break;
      got += decoder.decode(value, { stream: true });
    }
    expect(got).toBe(stream.slice(0, cut));
    goOn();
    await reader?.cancel();
  });
});

describe('a chat stream whose client did not ask for its usage', () => {
  const model = 'native-chat-completions';
  const path = paths['chat-completions'].stream;
  const body = `{ "messages":[{"role":"user","content":"Gr\\u00fc\\u00DFe"}], "big":12345678901234567890, "model":"${model}", "stream":true }\n`;

  test('shows none, though the gateway asks the provider for it and changes nothing else', async () => {
    const stream = streams['chat-completions'](model);
    script = answers(stream, 'text/event-stream');
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body,
    });
    const text = await response.text();
    expect(text).toContain('世界 🌍');
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect(text).not.toContain('"usage"');
    const added = ',"stream_options":{"include_usage":true}';
    expect(seen().body.toString().replace(added, '')).toBe(body);
    expect(seen().body.toString()).toContain(added);
  });
});

describe('headers that travel between equals', () => {
  test('the messages version and every beta flag, known or not', async () => {
    const model = 'native-messages';
    script = answers(wholes.messages(model), 'application/json');
    await asks.messages.whole(model, new Recorder());
    expect(seen().headers).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'context-1m-2025-08-07,x-future-2027-01-01',
      'x-api-key': channelKey,
    });
    expect(seen().headers.authorization).toBeUndefined();
  });

  test('the older version of a client that sends x-api-key', async () => {
    const model = 'native-messages';
    script = answers(wholes.messages(model), 'application/json');
    const message = await olderAnthropic(gateway).messages.create({
      model,
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(message.model).toBe(model);
    expect(seen().headers).toMatchObject({ 'anthropic-version': '2023-06-01', 'x-api-key': channelKey });
  });

  test('the chat beta flag', async () => {
    const model = 'native-chat-completions';
    script = answers(wholes['chat-completions'](model), 'application/json');
    await asks['chat-completions'].whole(model, new Recorder());
    expect(seen().headers).toMatchObject({
      'openai-beta': 'future=v9',
      authorization: `Bearer ${channelKey}`,
    });
  });

  test('generateContent asks the provider for the framing it can read, whatever the client wants', async () => {
    const model = 'native-generate-content';
    script = answers(streams['generate-content'](model), 'text/event-stream');
    await asks['generate-content'].stream(model, new Recorder());
    expect(new URL(seen().url, upstream.url).searchParams.get('alt')).toBe('sse');
    expect(seen().headers).toMatchObject({ 'x-goog-api-key': channelKey });
  });
});

/** A provider's refusal, with the code that the runner acts upon. */
const refusal = (type: string, code: string): string =>
  `{"type":"error","error":{"type":"${type}","message":"No thread here.","details":{"error_code":"${code}"}},"request_id":"req_upstream"}`;

const threadOf = ({ body }: SeenRequest): unknown =>
  (JSON.parse(body.toString()) as { thread?: unknown }).thread;

describe('a tool runner that keeps its history at the provider', () => {
  const model = 'native-messages';
  const call = `{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[{"type":"tool_use","id":"toolu_1","name":"noop","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`;
  const run = async (recorder: Recorder): Promise<string> => {
    const message = await anthropic(gateway, { recorder }).beta.messages.toolRunner({
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [
        {
          name: 'noop',
          input_schema: { type: 'object' },
          parse: (input: unknown) => input,
          run: () => 'done',
        },
      ],
    });
    return textOf(message.content as { type: string; text?: string }[]);
  };
  test('its thread reaches a provider of the same format, and goes on there', async () => {
    const recorder = new Recorder();
    script = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(upstream.requests.length === 1 ? call : wholes.messages(model));
    };
    expect(await run(recorder)).toContain('世界');
    expect(upstream.requests.map(threadOf)).toEqual([
      { type: 'create' },
      { type: 'continue', previous_message_id: 'msg_1' },
    ]);
    expect(upstream.requests[1]?.body.toString()).toBe(recorder.last.requestBody);
    expect(upstream.requests[0]?.headers['anthropic-beta']).toContain('message-threads-2026-08-12');
  });

  test('when the provider keeps none, its refusal reaches the runner, which goes on without', async () => {
    script = (request, response) => {
      const threaded = threadOf(request) !== undefined;
      response.writeHead(threaded ? 400 : 200, { 'content-type': 'application/json' });
      if (threaded) response.end(refusal('invalid_request_error', 'thread_unsupported_request'));
      else response.end(request.body.includes('tool_result') ? wholes.messages(model) : call);
    };
    expect(await run(new Recorder())).toContain('世界');
  });

  test('when the provider has lost it, its 404 reaches the runner, which sends everything again', async () => {
    script = (request, response) => {
      const thread = threadOf(request) as { type: string } | undefined;
      const lost = thread?.type === 'continue';
      response.writeHead(lost ? 404 : 200, { 'content-type': 'application/json' });
      if (lost) response.end(refusal('not_found_error', 'thread_not_found'));
      else response.end(request.body.includes('tool_result') ? wholes.messages(model) : call);
    };
    expect(await run(new Recorder())).toContain('世界');
  });
});
