import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  type ConverseStreamOutput,
} from '@aws-sdk/client-bedrock-runtime';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { awsHeaders } from '../../channels/_kit/identity/aws-signature.ts';
import { accessesOf } from '../../channels/_kit/identity/aws-regions.ts';
import bedrockChannel from '../../channels/bedrock/index.ts';
import { passEventStream, writeEventStream } from '../../core/formats/_shared/event-stream.ts';
import { createLog } from '../../core/log.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { bedrock } from '../clients/converse-client.ts';
import { anthropic, openai } from '../clients/sdks.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const profile = 'arn:aws:bedrock:us-west-2:123456789012:application-inference-profile/ab12cd';
const llama = 'meta.llama3-3-70b-instruct-v1:0';

type Script = Parameters<typeof startUpstream>[0];

let gateway: TestGateway | undefined;
let upstream: ScriptedUpstream | undefined;
let client: BedrockRuntimeClient | undefined;

afterEach(async () => {
  vi.unstubAllEnvs();
  client?.destroy();
  await gateway?.close();
  await upstream?.close();
  client = gateway = upstream = undefined;
});

async function start(
  script: Script,
  options: Parameters<typeof bedrockChannel>[0] = {},
  settings: Partial<Parameters<typeof startGateway>[0]> = {},
): Promise<{
  readonly gateway: TestGateway;
  readonly requests: SeenRequest[];
  readonly client: BedrockRuntimeClient;
}> {
  upstream = await startUpstream(script);
  gateway = await startGateway({
    ...settings,
    channels: [
      bedrockChannel({ region: 'us-east-1', key: 'bedrock-key', baseUrl: upstream.url, ...options }),
    ],
  });
  client = bedrock(gateway);
  return { gateway, requests: upstream.requests, client };
}

const textMessage = (text: string): JsonObject => ({
  output: { message: { role: 'assistant', content: [{ text }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 10, outputTokens: 3, totalTokens: 13 },
  metrics: { latencyMs: 12 },
});

const whole =
  (body: JsonObject, status = 200, headers: Readonly<Record<string, string>> = {}): Script =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

const streamType = { 'content-type': 'application/vnd.amazon.eventstream' };
const streamed =
  (...messages: readonly Buffer[]): Script =>
  (_request, response) => {
    response.writeHead(200, streamType);
    for (const message of messages) response.write(message);
    response.end();
  };

const event = (name: string, json: JsonObject): Buffer => writeEventStream({ event: name, json });
const hello = [
  event('messageStart', { role: 'assistant', p: 'abc' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' }, p: 'a' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: ' there' }, p: 'abcd' }),
  event('contentBlockStop', { contentBlockIndex: 0 }),
  event('messageStop', { stopReason: 'end_turn' }),
  event('metadata', {
    usage: { inputTokens: 10, outputTokens: 3, totalTokens: 13 },
    metrics: { latencyMs: 5 },
  }),
];
/** An event as `event` makes it, with lists in lists. */
const nested = passEventStream({
  event: 'contentBlockDelta',
  data: `{"contentBlockIndex":0,"delta":{"odd":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`,
});
const converseInput = { messages: [{ role: 'user' as const, content: [{ text: 'Hi' }] }] };

async function eventsOf(
  stream: AsyncIterable<ConverseStreamOutput> | undefined,
): Promise<ConverseStreamOutput[]> {
  const events: ConverseStreamOutput[] = [];
  for await (const one of stream ?? []) events.push(one);
  return events;
}

describe('a client of Converse', () => {
  test('passes through, with an address of a model in the path and an API key as bearer', async () => {
    const { client: sdk, requests } = await start(whole(textMessage('Hello')));
    const reply = await sdk.send(
      new ConverseCommand({
        modelId: profile,
        ...converseInput,
        additionalModelRequestFields: { of: { tomorrow: 1 } },
      }),
    );
    expect(reply.output?.message?.content).toEqual([{ text: 'Hello' }]);
    expect(reply.metrics?.latencyMs).toBe(12);
    const [seen] = requests;
    expect(seen?.url).toBe(`/model/${encodeURIComponent(profile)}/converse`);
    expect(seen?.headers.authorization).toBe('Bearer bedrock-key');
    expect(JSON.parse(seen?.body.toString() ?? '')).toEqual({
      ...converseInput,
      additionalModelRequestFields: { of: { tomorrow: 1 } },
    });
  });

  test('gets a stream as the messages that the provider sent', async () => {
    const { client: sdk, requests } = await start(streamed(...hello));
    const { stream } = await sdk.send(new ConverseStreamCommand({ modelId: llama, ...converseInput }));
    const events = await eventsOf(stream);
    expect(events.map((one) => Object.keys(one)[0])).toEqual([
      'messageStart',
      'contentBlockDelta',
      'contentBlockDelta',
      'contentBlockStop',
      'messageStop',
      'metadata',
    ]);
    expect(events.map((one) => one.contentBlockDelta?.delta?.text ?? '').join('')).toBe('Hello there');
    expect(requests[0]?.url).toBe(`/model/${encodeURIComponent(llama)}/converse-stream`);
  });

  test('gets that stream under its media type, held back by nobody on the way', async () => {
    const { gateway: running } = await start(streamed(...hello));
    const response = await fetch(`${running.url}/model/${llama}/converse-stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(converseInput),
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...streamType,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-amzn-requestid': expect.stringMatching(/^req_/) as string,
    });
    expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.concat(hello));
  });

  test('counts a conversation there where the provider counts, and here where it does not', async () => {
    const { client: sdk, requests } = await start(whole({ inputTokens: 42 }));
    const input = { converse: converseInput };
    expect((await sdk.send(new CountTokensCommand({ modelId: claude, input }))).inputTokens).toBe(42);
    const here = await sdk.send(new CountTokensCommand({ modelId: llama, input }));
    expect(here.inputTokens).toBeGreaterThan(0);
    const maker = encodeURIComponent(claude.slice('us.'.length));
    expect(requests.map(({ url }) => url)).toEqual([`/model/${maker}/count-tokens`]);
  });

  test.each([
    [400, 'ValidationException', 400, 'ValidationException'],
    [403, 'AccessDeniedException', 502, 'InternalServerException'],
    [404, 'ResourceNotFoundException', 503, 'ServiceUnavailableException'],
    [424, 'ModelErrorException', 502, 'InternalServerException'],
    [429, 'ThrottlingException', 429, 'ThrottlingException'],
    [503, 'ServiceUnavailableException', 503, 'ServiceUnavailableException'],
    [400, 'ThrottlingException', 429, 'ThrottlingException'],
  ])('a provider that answers %i %s is told as %i %s', async (status, type, expectedStatus, name) => {
    const { client: sdk } = await start(
      whole({ message: 'No.' }, status, { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` }),
    );
    await expect(sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }))).rejects.toMatchObject({
      name,
      $metadata: { httpStatusCode: expectedStatus },
    });
  });

  test('learns of an exception inside a stream', async () => {
    const exception = event('error', { __type: 'throttlingException', message: 'Too fast.' });
    const { client: sdk } = await start(streamed(...hello.slice(0, 3), exception));
    const { stream } = await sdk.send(new ConverseStreamCommand({ modelId: llama, ...converseInput }));
    await expect(eventsOf(stream)).rejects.toMatchObject({
      name: 'ThrottlingException',
      message: 'Too fast.',
    });
  });

  test.each([
    ['is cut inside a message', [...hello.slice(0, 3), (hello[3] ?? Buffer.alloc(0)).subarray(0, 9)]],
    ['ends before its end', hello.slice(0, 3)],
    [
      'has a wrong checksum',
      [
        ...hello.slice(0, 3),
        Buffer.concat([(hello[3] ?? Buffer.alloc(1)).subarray(0, -1), Buffer.from([1])]),
      ],
    ],
  ])('a stream that %s does not end cleanly', async (_what, messages) => {
    const { client: sdk } = await start(streamed(...messages));
    const { stream } = await sdk.send(new ConverseStreamCommand({ modelId: llama, ...converseInput }));
    await expect(eventsOf(stream)).rejects.toMatchObject({ name: 'ModelStreamErrorException' });
  });
});

const claudeEvents: readonly JsonObject[] = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 3 },
  },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 10 } },
];
const chunk = (json: JsonObject): Buffer =>
  event('chunk', { bytes: Buffer.from(JSON.stringify(json)).toString('base64'), p: 'abc' });
const claudeRequest = {
  model: claude,
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hi' }],
};

describe('Claude', () => {
  test('is asked in its own words, whose stream passes inside the event stream', async () => {
    const { gateway: running, requests } = await start(streamed(...claudeEvents.map(chunk)));
    const response = await fetch(`${running.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': running.key,
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'one-2025-01-01,two-2025-02-02',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ ...claudeRequest, stream: true }),
    });
    expect(await response.text()).toBe(
      claudeEvents.map((json) => `event: ${String(json.type)}\ndata: ${JSON.stringify(json)}\n\n`).join(''),
    );
    const [seen] = requests;
    expect(seen?.url).toBe(`/model/${encodeURIComponent(claude)}/invoke-with-response-stream`);
    expect(JSON.parse(seen?.body.toString() ?? '')).toEqual({
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['one-2025-01-01', 'two-2025-02-02'],
      max_tokens: 100,
      messages: claudeRequest.messages,
    });
  });

  test('is asked whole by a client of another format', async () => {
    const { gateway: running, requests } = await start(
      whole({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude',
        content: [{ type: 'text', text: 'Hello' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 3 },
      }),
    );
    const reply = await openai(running).chat.completions.create({
      model: claude,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(reply.choices[0]?.message.content).toBe('Hello');
    expect(requests[0]?.url).toBe(`/model/${encodeURIComponent(claude)}/invoke`);
  });

  test('an exception inside its stream is an error of the class that it names', async () => {
    const exception = event('error', { __type: 'throttlingException', message: 'Too fast.' });
    const { gateway: running } = await start(streamed(exception));
    const failed = anthropic(running).messages.create({ ...claudeRequest, stream: true });
    await expect(failed).rejects.toMatchObject({ status: 429 });
  });
});

describe('other models', () => {
  test('an event that is nested too deeply ends the stream with an error', async () => {
    const { gateway: running } = await start(streamed(...hello.slice(0, 2), nested, ...hello.slice(2)));
    const response = await fetch(`${running.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: llama, stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    const text = await response.text();
    expect(text).toContain('"error"');
    expect(text).not.toContain('[DONE]');
  });

  test('are asked in Converse by clients of other formats, tools and pictures included', async () => {
    const { gateway: running, requests } = await start(whole(textMessage('A pixel.')));
    const reply = await openai(running).chat.completions.create({
      model: 'amazon.nova-pro-v1:0',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
          ],
        },
      ],
      tools: [
        { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } },
      ],
      max_tokens: 50,
    });
    expect(reply.choices[0]?.message.content).toBe('A pixel.');
    expect(reply.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 3 });
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual({
      system: [{ text: 'Be brief.' }],
      messages: [
        {
          role: 'user',
          content: [{ text: 'What is it?' }, { image: { format: 'png', source: { bytes: 'iVBORw0KGgo=' } } }],
        },
      ],
      toolConfig: {
        tools: [{ toolSpec: { name: 'look', inputSchema: { json: { type: 'object', properties: {} } } } }],
      },
      inferenceConfig: { maxTokens: 50 },
    });
  });

  test('get a tool that is forced by its name alone, where none can be forced so', async () => {
    const { gateway: started, requests } = await start(whole(textMessage('ok')));
    const tool = (name: string): object => ({ type: 'function', function: { name } });
    const sentFor = async (model: string): Promise<JsonObject> => {
      await openai(started).chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Hi' }],
        tools: [tool('look'), tool('listen')] as never,
        tool_choice: { type: 'function', function: { name: 'listen' } },
      });
      return (JSON.parse(requests.at(-1)?.body.toString() ?? '{}') as { toolConfig: JsonObject }).toolConfig;
    };
    expect(await sentFor('deepseek.v3.2')).toMatchObject({
      tools: [{ toolSpec: { name: 'listen' } }],
      toolChoice: { any: {} },
    });
    expect(await sentFor('amazon.nova-lite-v1:0')).toMatchObject({
      toolChoice: { tool: { name: 'listen' } },
    });
    const free = await sentFor(llama);
    expect(free['toolChoice']).toBeUndefined();
    expect(free['tools']).toHaveLength(2);
  });

  test('get schemas in the part of JSON Schema that they take, and profiles of all parts of the world are known', async () => {
    const { gateway: started, requests } = await start(whole(textMessage('{"size":1}')));
    const schema = { type: 'object', properties: { size: { type: 'integer', minimum: 1 } } };
    const sentFor = async (model: string): Promise<string | undefined> => {
      await openai(started).chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Hi' }],
        response_format: { type: 'json_schema', json_schema: { name: 'sized', schema } },
      });
      const body = JSON.parse(requests.at(-1)?.body.toString() ?? '{}') as {
        outputConfig?: { textFormat: { structure: { jsonSchema: { schema: string } } } };
      };
      return body.outputConfig?.textFormat.structure.jsonSchema.schema;
    };
    expect(JSON.parse((await sentFor('in.moonshotai.kimi-k3')) ?? '')).toEqual({
      type: 'object',
      properties: { size: { type: 'integer', description: '{minimum: 1}' } },
      additionalProperties: false,
    });
    expect(await sentFor('us.xai.grok-4.6')).toBeUndefined();
  });

  test('a stream reaches a client of chat completions', async () => {
    const { gateway: running } = await start(streamed(...hello));
    const stream = await openai(running).chat.completions.create({
      model: llama,
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
    });
    let text = '';
    for await (const part of stream) text += part.choices[0]?.delta.content ?? '';
    expect(text).toBe('Hello there');
  });
});

describe('who asks', () => {
  test('two halves of a key sign each request, body and path with it', async () => {
    const { client: sdk, requests } = await start(whole(textMessage('Hello')), {
      key: 'AKIDEXAMPLE|secret|token',
    });
    await sdk.send(new ConverseCommand({ modelId: claude, ...converseInput }));
    const [seen] = requests;
    const date = String(seen?.headers['x-amz-date']);
    const at = date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
    const url = new URL(`http://${seen?.headers.host ?? ''}${seen?.url ?? ''}`);
    const expected = await awsHeaders(
      { method: 'POST', url, headers: { 'content-type': 'application/json' }, body: seen?.body ?? '' },
      { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'token' },
      { service: 'bedrock', region: 'us-east-1', at: new Date(at) },
    );
    expect(seen?.headers.authorization).toBe(expected.authorization);
    expect(seen?.headers['x-amz-security-token']).toBe('token');
  });

  test('regions take turns, and where one fails another answers', async () => {
    const tried: string[] = [];
    const { client: sdk } = await start(
      ({ headers }, response) => {
        const region = /\/\d{8}\/([\w-]+)\/bedrock\//.exec(headers.authorization ?? '')?.[1] ?? '';
        tried.push(region);
        const failing = region === 'us-east-1';
        response.writeHead(failing ? 503 : 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(failing ? { message: 'Down.' } : textMessage('Hello')));
      },
      { region: undefined, key: 'AKID|secret', regions: ['us-east-1', 'eu-west-1'] },
    );
    for (let round = 0; round < 3; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- each sees what became of the last
      const reply = await sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }));
      expect(reply.output?.message?.content).toEqual([{ text: 'Hello' }]);
    }
    expect(new Set(tried)).toEqual(new Set(['us-east-1', 'eu-west-1']));
  });

  test.each([
    ['an identity', undefined, ['us-east-1', 'eu-west-1']],
    ['a key', 'AKID|secret', [/^us-east-1 [0-9a-f]{12}$/, /^eu-west-1 [0-9a-f]{12}$/]],
  ])(
    'regions go by their names in metrics, in the admin API and in the log (%s)',
    async (_who, key, expected) => {
      vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDENV');
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'hidden-word');
      vi.stubEnv('AWS_SESSION_TOKEN', undefined);
      vi.stubEnv('AWS_PROFILE', undefined);
      const { client: sdk, gateway: running } = await start(
        whole({ message: 'Denied.' }, 403),
        { region: undefined, key, regions: ['us-east-1', 'eu-west-1'] },
        { adminPassword },
      );
      await expect(sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }))).rejects.toMatchObject(
        {
          $metadata: { httpStatusCode: 502 },
        },
      );
      const metrics = await (await fetch(`${running.url}/metrics`)).text();
      const shown = [...metrics.matchAll(/^sluice_channel_standing\{.*key="([^"]*)",standing="up"/gm)];
      const names = expected.map((one): unknown =>
        typeof one === 'string' ? one : expect.stringMatching(one),
      );
      expect(shown.map(([, id]) => id)).toEqual(names);
      const { channels } = await (await logIn(running.url)).request('listChannels');
      expect(channels[0]?.keys.map(({ id }) => id)).toEqual(names);
      if (key === undefined)
        expect(JSON.stringify(running.lines)).toContain('Amazon Bedrock in us-east-1 refused');
    },
  );

  test.each([
    ['is limited', 429],
    ['is down', 503],
    ['cannot be reached', 0],
  ])('in order of preference the second region is asked only where the first %s', async (_how, status) => {
    const tried: string[] = [];
    let failing = false;
    const { client: sdk, gateway: running } = await start(
      ({ headers, url }, response) => {
        const region = /\/\d{8}\/([\w-]+)\/bedrock\//.exec(headers.authorization ?? '')?.[1] ?? '';
        tried.push(region);
        if (failing && region === 'us-east-1') {
          if (status === 0) return void response.destroy();
          response.writeHead(status, { 'content-type': 'application/json' });
          return void response.end(JSON.stringify({ message: 'Not now.' }));
        }
        response.writeHead(
          200,
          url.endsWith('-stream') ? streamType : { 'content-type': 'application/json' },
        );
        response.end(url.endsWith('-stream') ? Buffer.concat(hello) : JSON.stringify(textMessage('Hello')));
      },
      {
        region: undefined,
        key: 'AKID|secret',
        regions: ['us-east-1', 'eu-west-1'],
        regionOrder: 'preference',
      },
    );
    const send = async (): Promise<void> => {
      const reply = await sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }));
      expect(reply.output?.message?.content).toEqual([{ text: 'Hello' }]);
    };
    await send();
    await send();
    expect(tried).toEqual(['us-east-1', 'us-east-1']);
    failing = true;
    await send();
    expect(tried.at(-2)).toBe('us-east-1');
    expect(tried.at(-1)).toBe('eu-west-1');
    const stream = await openai(running).chat.completions.create({
      model: llama,
      stream: true,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    let text = '';
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
    expect(text).toBe('Hello there');
    expect(tried.at(-1)).toBe('eu-west-1');
  });

  test('an identity without rights there, or of another region, is told with what to do', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDENV');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'hidden-word');
    vi.stubEnv('AWS_SESSION_TOKEN', undefined);
    vi.stubEnv('AWS_PROFILE', undefined);
    const denied = { message: 'User is not authorized to perform: bedrock:InvokeModel' };
    const { client: sdk, gateway: running } = await start(whole(denied, 403), {
      region: 'eu-west-1',
      key: undefined,
    });
    await expect(sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 502 },
    });
    const logText = running.lines.map((line) => JSON.stringify(line)).join('\n');
    expect(logText).toMatch(
      /Amazon Bedrock in eu-west-1 refused the identity of the channel \(status 403\)\. Check that it may call bedrock:InvokeModel /,
    );
    expect(logText).not.toContain('hidden-word');
  });

  test('without a region the config is refused with a sentence', async () => {
    await expect(startGateway({ channels: [bedrockChannel({ key: 'k' })] })).rejects.toThrow(
      "needs a region: region: 'us-east-1'",
    );
  });
});

const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

describe('the words of OpenAI', () => {
  const prompt = { messages: [{ role: 'user' as const, content: 'Hi' }] };

  test('reach Grok by the runtime, with the guardrail in headers, and effort and limits as it takes them', async () => {
    const { gateway: started, requests } = await start(whole(completion), {
      guardrail: { id: 'g1', version: '2', trace: false },
    });
    const reply = await openai(started).chat.completions.create({
      ...prompt,
      model: 'global.xai.grok-4.6',
      reasoning_effort: 'high',
      max_tokens: 5,
      stop: 'END',
    });
    expect(reply.choices[0]?.message.content).toBe('Hi.');
    const [request] = requests;
    expect(request?.url).toBe('/openai/v1/chat/completions');
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer bedrock-key',
      'x-amzn-bedrock-guardrailidentifier': 'g1',
      'x-amzn-bedrock-guardrailversion': '2',
    });
    expect(JSON.parse(request?.body.toString() ?? '')).toEqual({
      ...prompt,
      model: 'global.xai.grok-4.6',
      reasoning_effort: 'high',
      max_completion_tokens: 16,
    });
  });

  test('reach GPT by Responses, and by Converse for its clients', async () => {
    const { gateway: started, requests, client: converse } = await start(whole(textMessage('Hi.')));
    await converse.send(new ConverseCommand({ ...converseInput, modelId: 'us.openai.gpt-6-sol' }));
    expect(requests.at(-1)?.url).toBe('/model/us.openai.gpt-6-sol/converse');
    await openai(started)
      .responses.create({ model: 'us.openai.gpt-6-sol', input: 'Hi', reasoning: { effort: 'low' } })
      .catch(() => {});
    expect(requests.at(-1)?.url).toBe('/openai/v1/responses');
    expect(JSON.parse(requests.at(-1)?.body.toString() ?? '')).toMatchObject({
      reasoning: { effort: 'low' },
    });
  });

  test('reach Mantle under the prefix of each model, signed for its own service', async () => {
    const { gateway: started, requests } = await start(whole(completion), {
      endpoint: 'mantle',
      key: 'AKIDEXAMPLE|secret',
    });
    for (const model of ['openai.gpt-oss-120b', 'google.gemma-4-31b', 'qwen.qwen3-32b'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await openai(started).chat.completions.create({ ...prompt, model });
    expect(requests.map(({ url }) => url)).toEqual([
      '/v1/chat/completions',
      '/openai/v1/chat/completions',
      '/v1/chat/completions',
    ]);
    expect(requests[0]?.headers.authorization).toContain('/us-east-1/bedrock-mantle/aws4_request');
    await openai(started)
      .chat.completions.create({ ...prompt, model: 'anthropic.claude-opus-5-5' })
      .catch(() => {});
    expect(requests.at(-1)?.url).toBe('/anthropic/v1/messages');
    expect(requests.at(-1)?.headers['anthropic-version']).toBe('2023-06-01');
    await openai(started)
      .responses.create({ model: 'openai.gpt-5.6-sol', input: 'Hi' })
      .catch(() => {});
    expect(requests.at(-1)?.url).toBe('/openai/v1/responses');
  });

  test('list the models of Mantle, whose address names its region', async () => {
    expect(
      accessesOf(
        { baseUrl: 'https://bedrock-mantle.eu-west-1.api.aws', regionOrder: 'turns' },
        { keys: ['k'], log: createLog('silent') },
        'bedrock',
      )[0]?.region,
    ).toBe('eu-west-1');
    const { gateway: started, requests } = await start(
      whole({ object: 'list', data: [{ id: 'openai.gpt-oss-120b', object: 'model' }] }),
      { endpoint: 'mantle', models: 'discover' },
    );
    await expect
      .poll(async () => (await openai(started).models.list()).data.map(({ id }) => id))
      .toContain('openai.gpt-oss-120b');
    expect(requests[0]?.url).toBe('/v1/models');
  });

  test('and no guardrail is left out in silence where Mantle has none', async () => {
    await expect(
      start(whole(completion), { endpoint: 'mantle', guardrail: { id: 'g1', version: '2' } }),
    ).rejects.toThrow(/'guardrail' requires the endpoint 'runtime'/);
  });
});

describe('a guardrail', () => {
  const guardrail = { id: 'gr-1', version: '2', trace: true };

  test("of the operator's is asked for where the client names none", async () => {
    const { client: sdk, requests } = await start(whole(textMessage('Hello')), { guardrail });
    const own = { guardrailIdentifier: 'own', guardrailVersion: '1' };
    await sdk.send(new ConverseCommand({ modelId: llama, ...converseInput }));
    await sdk.send(new ConverseCommand({ modelId: llama, ...converseInput, guardrailConfig: own }));
    const configs = requests.map(({ body }) => (JSON.parse(body.toString()) as JsonObject).guardrailConfig);
    expect(configs).toEqual([{ guardrailIdentifier: 'gr-1', guardrailVersion: '2', trace: 'enabled' }, own]);
  });

  test('stands in headers where Claude is asked in its own words', async () => {
    const { gateway: running, requests } = await start(streamed(...claudeEvents.map(chunk)), { guardrail });
    await anthropic(running).messages.stream(claudeRequest).finalMessage();
    expect(requests[0]?.headers).toMatchObject({
      'x-amzn-bedrock-guardrailidentifier': 'gr-1',
      'x-amzn-bedrock-guardrailversion': '2',
      'x-amzn-bedrock-trace': 'ENABLED',
    });
  });
});

describe('models that do not chat', () => {
  const titan = 'amazon.titan-embed-text-v2:0';

  test('Titan embeds several texts one by one, and their tokens add up', async () => {
    const { gateway: running, requests } = await start(({ body }, response) => {
      const { inputText } = JSON.parse(body.toString()) as { inputText: string };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ embedding: [inputText.length, 1], inputTextTokenCount: 2 }));
    });
    const reply = await openai(running).embeddings.create({
      model: titan,
      input: ['a', 'bcd'],
      dimensions: 256,
      encoding_format: 'float',
    });
    expect(reply.data.map(({ embedding }) => embedding)).toEqual([
      [1, 1],
      [3, 1],
    ]);
    expect(reply.usage.prompt_tokens).toBe(4);
    expect(requests.map(({ url }) => url)).toEqual(
      Array.from({ length: 2 }, () => `/model/${encodeURIComponent(titan)}/invoke`),
    );
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual({ inputText: 'a', dimensions: 256 });
  });

  /** Nova's schema. https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html */
  const novaRequestSchema = z.strictObject({
    taskType: z.literal('SINGLE_EMBEDDING'),
    singleEmbeddingParams: z.strictObject({
      embeddingPurpose: z.enum(['GENERIC_INDEX', 'TEXT_RETRIEVAL', 'CLASSIFICATION', 'CLUSTERING']),
      embeddingDimension: z.literal([256, 384, 1024, 3072]).optional(),
      text: z.strictObject({ truncationMode: z.enum(['START', 'END', 'NONE']), value: z.string().min(1) }),
    }),
  });
  const nova = 'amazon.nova-2-multimodal-embeddings-v1:0';
  const novaProvider = () =>
    start(({ body }, response) => {
      const { data, error } = novaRequestSchema.safeParse(JSON.parse(body.toString()));
      if (data === undefined) {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ message: `Malformed input request: ${error?.message}` }));
        return;
      }
      const embedding = [data.singleEmbeddingParams.text.value.length, 1];
      response.writeHead(200, {
        'content-type': 'application/json',
        'x-amzn-bedrock-input-token-count': '2',
      });
      response.end(JSON.stringify({ embeddings: [{ embeddingType: 'TEXT', embedding }] }));
    });

  test('Nova embeds several texts one by one, in its own words, and Bedrock counts for it', async () => {
    const { gateway: running, requests } = await novaProvider();
    const reply = await openai(running).embeddings.create({
      model: nova,
      input: ['a', 'bcd'],
      dimensions: 384,
      encoding_format: 'float',
    });
    expect(reply.data.map(({ embedding }) => embedding)).toEqual([
      [1, 1],
      [3, 1],
    ]);
    expect(reply.usage.prompt_tokens).toBe(4);
    expect(requests.map(({ body }) => JSON.parse(body.toString()) as JsonObject)).toEqual(
      ['a', 'bcd'].map((value) => ({
        taskType: 'SINGLE_EMBEDDING',
        singleEmbeddingParams: {
          embeddingPurpose: 'GENERIC_INDEX',
          embeddingDimension: 384,
          text: { truncationMode: 'NONE', value },
        },
      })),
    );
  });

  test('a length of vectors that Nova has not is refused', async () => {
    const { gateway: running } = await novaProvider();
    await expect(
      openai(running).embeddings.create({ model: nova, input: 'a', dimensions: 512 }),
    ).rejects.toMatchObject({ status: 400 });
  });

  // https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-mm.html
  test('Titan for texts and images has another word for the length of vectors', async () => {
    const { gateway: running, requests } = await start(whole({ embedding: [1], inputTextTokenCount: 1 }));
    const model = 'amazon.titan-embed-image-v1';
    await openai(running).embeddings.create({ model, input: 'a', dimensions: 256 });
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual({
      inputText: 'a',
      embeddingConfig: { outputEmbeddingLength: 256 },
    });
  });

  test('Cohere embeds them at once, and Bedrock counts for it', async () => {
    const { gateway: running, requests } = await start(
      whole({ embeddings: { float: [[1], [2]] }, id: 'e' }, 200, { 'x-amzn-bedrock-input-token-count': '7' }),
    );
    const reply = await openai(running).embeddings.create({
      model: 'cohere.embed-v4:0',
      input: ['a', 'b'],
      encoding_format: 'float',
    });
    expect(reply.data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
    expect(reply.usage.prompt_tokens).toBe(7);
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual({
      texts: ['a', 'b'],
      input_type: 'search_document',
      embedding_types: ['float'],
    });
  });

  test('documents are put in order', async () => {
    const { gateway: running, requests } = await start(
      whole({
        results: [
          { index: 1, relevance_score: 0.9 },
          { index: 0, relevance_score: 0.1 },
        ],
      }),
    );
    const response = await fetch(`${running.url}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'cohere.rerank-v3-5:0', query: 'q', documents: ['a', 'b'], top_n: 5 }),
    });
    expect(await response.json()).toMatchObject({
      results: [{ index: 1, relevance_score: 0.9 }, { index: 0 }],
    });
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual({
      query: 'q',
      documents: ['a', 'b'],
      top_n: 2,
      api_version: 2,
    });
  });

  test.each([
    [
      'amazon.nova-canvas-v1:0',
      {
        taskType: 'TEXT_IMAGE',
        textToImageParams: { text: 'A cat' },
        imageGenerationConfig: { numberOfImages: 1, width: 1024, height: 1024, quality: 'premium' },
      },
    ],
    ['stability.stable-image-core-v1:1', { prompt: 'A cat', aspect_ratio: '1:1' }],
  ])('%s makes an image', async (model, body) => {
    const { gateway: running, requests } = await start(
      whole({ images: ['iVBORw0KGgo='], finish_reasons: [null] }),
    );
    const reply = await openai(running).images.generate({
      model,
      prompt: 'A cat',
      size: '1024x1024',
      quality: 'high',
    });
    expect(reply.data?.[0]?.b64_json).toBe('iVBORw0KGgo=');
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toEqual(body);
  });

  test('an image that was filtered is a refusal, and no failure of the channel', async () => {
    const { gateway: running } = await start(
      whole({ images: [], finish_reasons: ['Filter reason: prompt'] }),
    );
    await expect(
      openai(running).images.generate({ model: 'stability.sd3-5-large-v1:0', prompt: 'A cat' }),
    ).rejects.toMatchObject({ status: 400, code: 'content_policy_violation' });
  });
});
