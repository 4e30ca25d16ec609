import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import {
  streamOf,
  reportedUsage,
  wholeOf,
  type Answer,
  type UsageReport,
} from '../support/provider-replies.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { formats, type FormatName } from './sdks.ts';

/** End of a reply. */
type Ending = 'ends' | 'reaches its limit' | 'is cut';

const words = 'Forty-two, as has been known for a very long time.';

/** One frame a write, as providers send them; of an answer that is cut the words alone. */
async function send(response: ServerResponse, frames: readonly string[], ending: Ending): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of frames) {
    response.write(`${frame}\n\n`);
    await new Promise((resolve) => setImmediate(resolve));
    if (ending === 'is cut' && frame.includes(words)) break;
  }
  if (ending === 'is cut') response.destroy();
  else response.end();
}

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let telling: UsageReport = 'nothing';
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
    const answer: Answer = {
      parts: [{ kind: 'text', text: words }],
      end: ending === 'reaches its limit' ? 'length' : 'stop',
      usageReport: telling,
    };
    if (stream) return send(response, streamOf(format, answer), ending);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(wholeOf(format, answer)));
  });
  const endpoint = { key: 'k', baseUrl: `${upstream.url}/v1` };
  const traits = (name: FormatName) => ({ traits: { 'm-*': { formats: [name] } } });
  gateway = await startGateway({
    channels: [
      openaiChannel({
        ...endpoint,
        id: 'chat',
        models: ['m-chat-completions'],
        ...traits('chat-completions'),
      }),
      openaiChannel({ ...endpoint, id: 'responses', models: ['m-responses'], ...traits('responses') }),
      anthropicChannel({ ...endpoint, id: 'messages', models: ['m-messages'] }),
      geminiChannel({ ...endpoint, id: 'generate', models: ['m-generate-content'] }),
    ],
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** All objects that the gateway answers with: one, or those of a stream. */
async function sendAndListRecords(client: FormatName, model: string, stream: boolean): Promise<JsonObject[]> {
  const url = {
    'chat-completions': '/v1/chat/completions',
    messages: '/v1/messages',
    responses: '/v1/responses',
    'generate-content': `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  }[client];
  const message = { role: 'user', content: 'What is the answer?' };
  const body = {
    'chat-completions': {
      model,
      stream,
      messages: [message],
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    },
    messages: { model, stream, max_tokens: 100, messages: [message] },
    responses: { model, stream, input: [message], store: false },
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
  let last: JsonObject | undefined;
  for (const frame of frames) {
    const inner = isObject(frame.response) ? frame.response.usage : undefined;
    for (const usage of [frame.usage, frame.usageMetadata, inner]) if (isObject(usage)) last = usage;
  }
  if (last === undefined) return undefined;
  return [
    last.input_tokens ?? last.prompt_tokens ?? last.promptTokenCount,
    last.output_tokens ?? last.completion_tokens ?? last.candidatesTokenCount,
  ];
}

const pairs = formats.flatMap((client) =>
  formats.filter((provider) => provider !== client).map((provider) => [client, provider] as const),
);

describe.each(pairs)('a %s client of a %s provider', (client, provider) => {
  const model = `m-${provider}`;

  test.each<[UsageReport, Ending, boolean]>([
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
      const used = usageIn(await sendAndListRecords(client, model, stream));
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
    expect(usageIn(await sendAndListRecords(client, model, stream))).toEqual([
      reportedUsage.input,
      reportedUsage.output,
    ]);
  });
});

/** Formats whose error in a stream can be told with what was used until then. */
const tellsInErrors = pairs.filter(([client]) => client === 'generate-content' || client === 'responses');

test.each(tellsInErrors)(
  'a stream that is cut tells a %s client of a %s provider what was seen of it',
  async (client, provider) => {
    telling = 'nothing';
    ending = 'is cut';
    const frames = await sendAndListRecords(client, `m-${provider}`, true);
    expect(JSON.stringify(frames.at(-1))).toContain('error');
    expect(usageIn(frames)?.[1]).toBe(Math.ceil(words.length / 4));
  },
);

test('the first frame of a messages stream takes no picture for as many tokens as its bytes would be', async () => {
  telling = 'all';
  ending = 'ends';
  const image = { type: 'base64', media_type: 'image/jpeg', data: `/9j/${'A'.repeat(400_000)}` };
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${gateway.key}`,
    },
    body: JSON.stringify({
      model: 'm-chat-completions',
      stream: true,
      max_tokens: 100,
      messages: [{ role: 'user', content: [{ type: 'image', source: image }] }],
    }),
  });
  const first = /^data: (\{.*)$/m.exec(await response.text())?.[1] ?? '';
  const { message } = JSON.parse(first) as { message: { usage: { input_tokens: number } } };
  expect(message.usage.input_tokens).toBeGreaterThan(1000);
  expect(message.usage.input_tokens).toBeLessThan(3000);
});
