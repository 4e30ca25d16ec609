import type Anthropic from '@anthropic-ai/sdk';
import * as messagesErrors from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import type OpenAI from 'openai';
import * as chatErrors from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { anthropic, formats, genai, openai, Recorder, type FormatName } from './sdks.ts';
import { chatTool, config, messagesTool, responsesTool, rows, user, type Fields } from './loss-rows.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
    );
  });
  gateway = await startGateway({
    channels: [
      ...formats.map((format) =>
        demo({ id: format, speaks: [format], models: { [`via-${format}`]: 'demo' } }),
      ),
      openaiChannel({ key: 'k', baseUrl: `${upstream.url}/v1`, models: { 'official-chat': 'gpt-4.1' } }),
    ],
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

interface Options {
  readonly stream?: boolean;
  readonly headers?: Record<string, string>;
}

/** Sends a request with these fields through the SDK of a format and gives back the loss header, as a list. */
const losses: Readonly<
  Record<FormatName, (model: string, fields: Fields, options?: Options) => Promise<string[]>>
> = {
  async 'chat-completions'(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, messages: [{ role: 'user', content: 'Hi' }], ...fields, stream };
    const { data, response } = await openai(gateway)
      .chat.completions.create(body as unknown as OpenAI.Chat.Completions.ChatCompletionCreateParams, {
        headers,
      })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
  async messages(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, max_tokens: 4000, messages: [{ role: 'user', content: 'Hi' }], ...fields, stream };
    const { data, response } = await anthropic(gateway)
      .messages.create(body as unknown as Anthropic.MessageCreateParams, { headers })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
  async 'generate-content'(model, fields, { stream = false, headers = {} } = {}) {
    const recorder = new Recorder();
    const { models } = genai(gateway, { recorder, headers });
    const { contents = 'Hi', ...rest } = fields;
    const request = { model, contents: contents as string, config: { httpOptions: { extraBody: rest } } };
    if (stream) for await (const _ of await models.generateContentStream(request));
    else await models.generateContent(request);
    return listed(recorder.last.headers);
  },
  async responses(model, fields, { stream = false, headers = {} } = {}) {
    const body = { model, input: 'Hi', ...fields, stream };
    const { data, response } = await openai(gateway)
      .responses.create(body as unknown as OpenAI.Responses.ResponseCreateParams, { headers })
      .withResponse();
    if (stream) for await (const _ of data as AsyncIterable<unknown>);
    return listed(response.headers);
  },
};

/** Returns what the request lost. What a reply loses has tests of its own, because a stream loses it after its headers. */
function listed(headers: Headers): string[] {
  const header = headers.get('x-sluice-loss');
  const lost = header === null ? [] : header.split(', ');
  return lost.filter((path) => path !== 'text.proof').toSorted();
}

const refusals: Readonly<Record<FormatName, unknown>> = {
  'chat-completions': chatErrors.BadRequestError,
  messages: messagesErrors.BadRequestError,
  'generate-content': ApiError,
  responses: chatErrors.BadRequestError,
};

/** Fields of a strict refusal that only one SDK parses. */
const coded = (lost: readonly string[]): object => ({
  code: 'unsupported_parameter',
  param: expect.toBeOneOf([...lost]) as string,
});
const details: Readonly<Record<FormatName, (lost: readonly string[]) => object>> = {
  'chat-completions': coded,
  responses: coded,
  messages: () => ({ type: 'invalid_request_error' }),
  'generate-content': () => ({}),
};

describe.each(rows)('$client client, $channel channel', ({ client, channel, rows: pair }) => {
  const model = `via-${channel}`;

  test('a plain request loses nothing: there is no header', async () => {
    expect(await losses[client](model, {})).toEqual([]);
    expect(await losses[client](model, {}, { stream: true })).toEqual([]);
  });

  test.each(
    pair.map(([fields, lost]) => ({
      sent: JSON.stringify(fields).slice(0, 110),
      fields,
      lost,
      reported: lost.join(', ') || 'nothing',
    })),
  )('$sent loses $told', async ({ fields, lost }) => {
    expect(await losses[client](model, fields)).toEqual([...lost].toSorted());
  });

  test('everything that is lost stands in one header, whole and streamed, each path once', async () => {
    const some = pair.filter(
      ([fields]) =>
        !('messages' in fields) &&
        !('tools' in fields) &&
        !('response_format' in fields) &&
        !('text' in fields) &&
        !('output_config' in fields),
    );
    const merged: Fields = {};
    const expected = new Set<string>();
    for (const [fields, lost] of some) {
      if (lost.length === 0) continue;
      for (const [key, value] of Object.entries(fields)) {
        merged[key] =
          key === 'generationConfig'
            ? { ...(merged[key] as Fields | undefined), ...(value as Fields) }
            : value;
      }
      for (const path of lost) expected.add(path);
    }
    expect(expected.size).toBeGreaterThanOrEqual(4);
    for (const stream of [false, true])
      expect(await losses[client](model, merged, { stream })).toEqual([...expected].toSorted());
  });

  test('strict: the same request is refused, and the refusal names every path', async () => {
    const lossy = pair.filter(([fields, lost]) => lost.length > 0 && !('messages' in fields)).slice(0, 6);
    for (const [fields, lost] of lossy) {
      const refused = losses[client](model, fields, { headers: { 'x-sluice-strict': 'true' } });
      await expect(refused).rejects.toBeInstanceOf(refusals[client]);
      const error = (await refused.catch((raised: unknown) => raised)) as { status: number; message: string };
      expect(error).toMatchObject({ status: 400, ...details[client](lost) });
      expect(lost.filter((path) => !error.message.includes(path))).toEqual([]);
    }
  });

  test('strict: a request that loses nothing is answered', async () => {
    expect(await losses[client](model, {}, { headers: { 'x-sluice-strict': 'true' } })).toEqual([]);
  });
});

test('a whole reply whose text ends with the proof of another format names it', async () => {
  const { response } = await anthropic(gateway)
    .messages.create({
      model: 'via-generate-content',
      max_tokens: 4096,
      messages: [{ role: 'user', content: 'Hi' }],
      thinking: { type: 'enabled', budget_tokens: 2048 },
    })
    .withResponse();
  expect(response.headers.get('x-sluice-loss')).toBe('text.proof');
});

describe.each(formats)('%s client, channel of the same format', (format) => {
  test('nothing is ever lost, strict or not', async () => {
    const all: Readonly<Record<FormatName, Fields>> = {
      'chat-completions': {
        seed: 7,
        logit_bias: { '1': 1 },
        x_future: 1,
        reasoning_effort: 'max',
        ...chatTool({ strict: true }),
        parallel_tool_calls: false,
      },
      messages: {
        top_k: 5,
        container: 'c',
        x_future: 1,
        ...messagesTool({ cache_control: { type: 'ephemeral' } }),
      },
      'generate-content': {
        safetySettings: [],
        labels: { a: 'b' },
        xFuture: 1,
        generationConfig: { seed: 7, mediaResolution: 'MEDIA_RESOLUTION_LOW' },
      },
      responses: {
        store: false,
        include: ['reasoning.encrypted_content'],
        truncation: 'auto',
        x_future: 1,
        reasoning: { effort: 'max', summary: 'auto', context: 'all_turns' },
        tools: [
          ...(responsesTool({ strict: true, defer_loading: true }).tools as unknown[]),
          { type: 'file_search', vector_store_ids: ['vs_1'] },
        ],
        parallel_tool_calls: false,
      },
    };
    for (const stream of [false, true]) {
      expect(
        await losses[format](`via-${format}`, all[format], {
          stream,
          headers: { 'x-sluice-strict': 'true' },
        }),
      ).toEqual([]);
    }
  });
});

describe('settings that some providers of the chat format take and the official one refuses', () => {
  test('messages: top_k goes where nothing is known against it, and is dropped and reported for the official API', async () => {
    expect(await losses.messages('via-chat-completions', { top_k: 5 })).toEqual([]);
    expect(await losses.messages('official-chat', { top_k: 5 })).toEqual(['top_k']);
    expect(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '')).not.toHaveProperty('top_k');
  });

  test('generateContent: topK likewise', async () => {
    expect(await losses['generate-content']('official-chat', config({ topK: 5 }))).toEqual([
      'generationConfig.topK',
    ]);
    expect(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '')).not.toHaveProperty('top_k');
  });
});

describe('content that the channel’s format cannot carry is refused, never dropped', () => {
  const wav = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==';
  const cases: readonly [
    client: FormatName,
    channel: FormatName,
    what: string,
    fields: Fields,
    path: string,
  ][] = [
    [
      'chat-completions',
      'messages',
      'sound',
      user([
        { type: 'text', text: 'Hi' },
        { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
      ]),
      'messages[0].content[1]',
    ],
    [
      'chat-completions',
      'messages',
      'another provider’s file',
      user([{ type: 'file', file: { file_id: 'file-1' } }]),
      'messages[0].content[0]',
    ],
    [
      'chat-completions',
      'generate-content',
      'another provider’s file',
      user([{ type: 'file', file: { file_id: 'file-1' } }]),
      'messages[0].content[0]',
    ],
    [
      'responses',
      'messages',
      'a tool of the provider’s own',
      { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
      'tools[0]',
    ],
    [
      'responses',
      'chat-completions',
      'a tool server of the provider’s own',
      { tools: [{ type: 'mcp', server_label: 'm', server_url: 'https://example.com' }] },
      'tools[0]',
    ],
    [
      'responses',
      'generate-content',
      'another provider’s file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      'input[0].content[0]',
    ],
    [
      'messages',
      'chat-completions',
      'another provider’s file',
      user([{ type: 'image', source: { type: 'file', file_id: 'file_1' } }]),
      'messages[0].content[0]',
    ],
    [
      'messages',
      'chat-completions',
      'a tool of the provider’s own',
      { tools: [{ type: 'bash_20250124', name: 'bash' }] },
      'tools[0]',
    ],
    [
      'messages',
      'generate-content',
      'a tool of the provider’s own',
      { tools: [{ type: 'bash_20250124', name: 'bash' }] },
      'tools[0]',
    ],
    [
      'generate-content',
      'messages',
      'sound',
      {
        contents: [
          { role: 'user', parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'audio/wav', data: wav } }] },
        ],
      },
      'contents[0].parts[1]',
    ],
    [
      'generate-content',
      'messages',
      'content cached at another provider',
      { cachedContent: 'cachedContents/1' },
      'cachedContent',
    ],
    [
      'generate-content',
      'chat-completions',
      'content cached at another provider',
      { cachedContent: 'cachedContents/1' },
      'cachedContent',
    ],
    [
      'generate-content',
      'chat-completions',
      'a tool of the provider’s own',
      { tools: [{ googleMaps: {} }] },
      'tools[0]',
    ],
  ];

  test.each(cases)(
    '%s → %s: %s is a 400 that names its place',
    async (client, channel, _what, fields, path) => {
      await expect(losses[client](`via-${channel}`, fields)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining(path) as string,
      });
    },
  );
});

describe('what is lost on the way back', () => {
  test('a generated picture has no place in messages: the answer comes, and the header says what is missing', async () => {
    const { data, response } = await anthropic(gateway)
      .messages.create({
        model: 'via-generate-content',
        max_tokens: 500,
        messages: [{ role: 'user', content: '!image Hi' }],
      })
      .withResponse();
    expect(data.content.map(({ type }) => type)).toEqual(['text']);
    expect(listed(response.headers)).toHaveLength(1);
  });

  test('a citation reaches a client whose format has citations', async () => {
    const completion = await openai(gateway).chat.completions.create({
      model: 'via-messages',
      messages: [{ role: 'user', content: '!cite Hi' }],
    });
    expect(completion.choices[0]?.message.annotations).toMatchObject([
      { type: 'url_citation', url_citation: { url: 'https://example.com/demo', title: 'The demo' } },
    ]);
  });
});
