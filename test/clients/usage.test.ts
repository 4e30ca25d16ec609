import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { formats, type FormatName } from './sdks.ts';

/** What a provider tells of its usage. */
type Telling = 'nothing' | 'zeros' | 'all';
/** How its answer ends. */
type Ending = 'ends' | 'reaches its limit' | 'is cut';

const words = 'Forty-two, as has been known for a very long time.';

/** One frame a write, as providers send them. */
async function send(response: ServerResponse, frames: readonly string[], ending: Ending): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of frames) {
    response.write(`${frame}\n\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (ending === 'is cut') response.destroy();
  else response.end();
}

const data = (json: JsonObject): string => `data: ${JSON.stringify(json)}`;
const named = (json: JsonObject): string => `event: ${String(json.type)}\n${data(json)}`;

type Counts = Readonly<Record<Telling, JsonObject>>;
const chatCounts: Counts = {
  nothing: {},
  zeros: { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } },
  all: { usage: { prompt_tokens: 1234, completion_tokens: 5678, total_tokens: 6912 } },
};
const tokens = (input: number, output: number): JsonObject => ({
  usage: { input_tokens: input, output_tokens: output },
});
const messagesCounts: Counts = { nothing: {}, zeros: tokens(0, 0), all: tokens(1234, 5678) };
const generateCounts: Counts = {
  nothing: {},
  zeros: { usageMetadata: { trafficType: 'ON_DEMAND' } },
  all: { usageMetadata: { promptTokenCount: 1234, candidatesTokenCount: 5678, totalTokenCount: 6912 } },
};

/** The frames of a provider's stream; the first of them alone when it is cut. */
function framesOf(format: FormatName, telling: Telling, ending: Ending): readonly string[] {
  const long = ending === 'reaches its limit';
  switch (format) {
    case 'chat-completions': {
      const chunk = (choices: JsonValue, more: JsonObject = {}): string =>
        data({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
      const said = chunk([{ index: 0, delta: { role: 'assistant', content: words }, finish_reason: null }]);
      if (ending === 'is cut') return [said];
      return [
        said,
        chunk([{ index: 0, delta: {}, finish_reason: long ? 'length' : 'stop' }]),
        ...(telling === 'nothing' ? [] : [chunk([], chatCounts[telling])]),
        'data: [DONE]',
      ];
    }
    case 'messages': {
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
      const { usage } = messagesCounts[telling];
      const counts = usage === undefined ? {} : { usage };
      const said = [
        named({
          type: 'message_start',
          message: { ...message, stop_reason: null, stop_sequence: null, ...counts },
        }),
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } }),
      ];
      if (ending === 'is cut') return said;
      return [
        ...said,
        named({ type: 'content_block_stop', index: 0 }),
        named({
          type: 'message_delta',
          delta: { stop_reason: long ? 'max_tokens' : 'end_turn', stop_sequence: null },
          ...counts,
        }),
        named({ type: 'message_stop' }),
      ];
    }
    case 'generate-content': {
      const chunk = (text: string, more: JsonObject): string =>
        data({
          candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
          modelVersion: 'm',
          responseId: 'r',
          ...generateCounts[telling],
        });
      const said = chunk(words, {});
      return ending === 'is cut' ? [said] : [said, chunk('', { finishReason: long ? 'MAX_TOKENS' : 'STOP' })];
    }
    case 'responses': {
      const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', output: [] };
      const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' };
      const part = { type: 'output_text', text: words, annotations: [] };
      const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
      const status = long ? 'incomplete' : 'completed';
      const said = [
        named({ type: 'response.created', response: { ...response, status: 'in_progress' } }),
        named({
          type: 'response.output_item.added',
          output_index: 0,
          item: { ...item, status: 'in_progress', content: [] },
        }),
        named({ type: 'response.output_text.delta', ...at, delta: words }),
      ];
      if (ending === 'is cut') return said;
      return [
        ...said,
        named({ type: 'response.output_item.done', output_index: 0, item: { ...item, content: [part] } }),
        named({
          type: `response.${status}`,
          response: {
            ...response,
            status,
            output: [{ ...item, content: [part] }],
            ...(long ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
            ...messagesCounts[telling],
          },
        }),
      ];
    }
  }
}

/** A provider's whole reply. */
function wholeOf(format: FormatName, telling: Telling, ending: Ending): JsonObject {
  const long = ending === 'reaches its limit';
  switch (format) {
    case 'chat-completions': {
      const message = { role: 'assistant', content: words, refusal: null };
      const choices = [{ index: 0, message, finish_reason: long ? 'length' : 'stop' }];
      return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, ...chatCounts[telling] };
    }
    case 'messages':
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: words }],
        stop_reason: long ? 'max_tokens' : 'end_turn',
        stop_sequence: null,
        ...messagesCounts[telling],
      };
    case 'generate-content': {
      const content = { role: 'model', parts: [{ text: words }] };
      const candidates = [{ content, finishReason: long ? 'MAX_TOKENS' : 'STOP', index: 0 }];
      return { candidates, modelVersion: 'm', responseId: 'r', ...generateCounts[telling] };
    }
    case 'responses': {
      const part = { type: 'output_text', text: words, annotations: [] };
      const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [part] };
      return {
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        model: 'm',
        status: long ? 'incomplete' : 'completed',
        output: [item],
        ...(long ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
        ...messagesCounts[telling],
      };
    }
  }
}

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let telling: Telling = 'nothing';
let ending: Ending = 'ends';

const providerOf: Readonly<Record<string, FormatName>> = {
  '/chat/completions': 'chat-completions',
  '/messages': 'messages',
  '/responses': 'responses',
};

beforeAll(async () => {
  upstream = await startUpstream(async ({ url, body }, response) => {
    const { pathname } = new URL(url, 'http://upstream');
    const format = providerOf[pathname.replace('/v1', '')] ?? 'generate-content';
    const stream =
      pathname.includes(':stream') || (JSON.parse(body.toString()) as JsonObject).stream === true;
    if (stream) return send(response, framesOf(format, telling, ending), ending);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(wholeOf(format, telling, ending)));
  });
  const place = { key: 'k', baseUrl: `${upstream.url}/v1` };
  const traits = (name: FormatName) => ({ traits: { 'm-*': { formats: [name] } } });
  gateway = await startGateway({
    channels: [
      openaiChannel({ ...place, id: 'chat', models: ['m-chat-completions'], ...traits('chat-completions') }),
      openaiChannel({ ...place, id: 'responses', models: ['m-responses'], ...traits('responses') }),
      anthropicChannel({ ...place, id: 'messages', models: ['m-messages'] }),
      geminiChannel({ ...place, id: 'generate', models: ['m-generate-content'] }),
    ],
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** All objects that the gateway answers with: one, or those of a stream. */
async function ask(client: FormatName, model: string, stream: boolean): Promise<JsonObject[]> {
  const url = {
    'chat-completions': '/v1/chat/completions',
    messages: '/v1/messages',
    responses: '/v1/responses',
    'generate-content': `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  }[client];
  const said = { role: 'user', content: 'What is the answer?' };
  const body = {
    'chat-completions': {
      model,
      stream,
      messages: [said],
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    },
    messages: { model, stream, max_tokens: 100, messages: [said] },
    responses: { model, stream, input: [said], store: false },
    'generate-content': { contents: [{ role: 'user', parts: [{ text: 'What is the answer?' }] }] },
  }[client];
  const response = await fetch(`${gateway.url}${url}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...(client === 'generate-content'
        ? { 'x-goog-api-key': gateway.key }
        : { authorization: `Bearer ${gateway.key}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!stream) return [JSON.parse(text) as JsonObject];
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject);
}

/** Input and output tokens, as the last that tell them do. */
function usageIn(
  frames: readonly JsonObject[],
): readonly [input: JsonValue | undefined, output: JsonValue | undefined] | undefined {
  let told: JsonObject | undefined;
  for (const frame of frames) {
    const inner = isObject(frame.response) ? frame.response.usage : undefined;
    for (const usage of [frame.usage, frame.usageMetadata, inner]) if (isObject(usage)) told = usage;
  }
  if (told === undefined) return undefined;
  return [
    told.input_tokens ?? told.prompt_tokens ?? told.promptTokenCount,
    told.output_tokens ?? told.completion_tokens ?? told.candidatesTokenCount,
  ];
}

const pairs = formats.flatMap((client) =>
  formats.filter((provider) => provider !== client).map((provider) => [client, provider] as const),
);

describe.each(pairs)('a %s client of a %s provider', (client, provider) => {
  const model = `m-${provider}`;

  test.each<[Telling, Ending, boolean]>([
    ['nothing', 'ends', true],
    ['nothing', 'ends', false],
    ['nothing', 'reaches its limit', true],
    ['nothing', 'reaches its limit', false],
    ['zeros', 'ends', true],
    ['zeros', 'ends', false],
  ])(
    'that tells %s of its usage gets an estimate of it when the answer %s (stream: %s)',
    async (tells, ends, stream) => {
      await gateway.forgetLines();
      telling = tells;
      ending = ends;
      const used = usageIn(await ask(client, model, stream));
      // Four bytes a token, of question and answer.
      expect(used).toEqual([expect.closeTo(9, -1), Math.ceil(words.length / 4)]);
      expect(Number(used?.[0])).toBeGreaterThan(4);
      await eventually(() =>
        expect(gateway.lines.findLast((line) => line.usage !== undefined)?.usage).toMatchObject({
          estimated: true,
        }),
      );
    },
  );

  test.each([true, false])('that tells its usage gets that (stream: %s)', async (stream) => {
    telling = 'all';
    ending = 'ends';
    expect(usageIn(await ask(client, model, stream))).toEqual([1234, 5678]);
  });
});

/** Formats whose error in a stream can be told with what was used until then. */
const tellsInErrors = pairs.filter(([client]) => client === 'generate-content' || client === 'responses');

test.each(tellsInErrors)(
  'a stream that is cut tells a %s client of a %s provider what was seen of it',
  async (client, provider) => {
    telling = 'nothing';
    ending = 'is cut';
    const frames = await ask(client, `m-${provider}`, true);
    expect(JSON.stringify(frames.at(-1))).toContain('error');
    expect(usageIn(frames)?.[1]).toBe(Math.ceil(words.length / 4));
  },
);
