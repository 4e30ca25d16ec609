/* oxlint-disable vitest/valid-expect -- the message says which of many cases it was. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpChannel } from '../../channels/_kit/http/http-channel.ts';
import { chatCodec as chatCompletions } from '../../core/formats/chat-completions/codec.ts';
import type { Codec } from '../../core/sdk/format.ts';
import { chat as generateContent } from '../../core/formats/generate-content/codec.ts';
import { chatCodec as messages } from '../../core/formats/messages/codec.ts';
import { responsesCodec as responses } from '../../core/formats/responses/codec.ts';
import { chatCodec as textCompletions } from '../../core/formats/text-completions/codec.ts';
import type { ChatRequest } from '../../core/model/chat.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { effortOfBudget, type Reasoning } from '../../core/model/reasoning.ts';
import type { ModelTraits } from '../../core/model/traits.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { selectRotating } from '../support/tries.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { fetchRaw, wholeReplies } from './_wire.ts';

const codecs = {
  'chat-completions': chatCompletions,
  messages,
  'generate-content': generateContent,
  responses,
  'text-completions': textCompletions,
} satisfies Readonly<Record<string, Codec<ChatRequest>>>;
type FormatName = keyof typeof codecs;
const formats = Object.keys(codecs) as FormatName[];

/** Every way in which a model of a format can be asked to think, or not. */
const styles: Readonly<Record<string, ModelTraits>> = {
  ordinary: {},
  none: { reasoning: 'none' },
  refusing: { refuses: ['reasoning'] },
  coarse: { efforts: ['low', 'high'] },
  effort: { reasoning: 'effort' },
  switch: { reasoning: 'thinking' },
  object: { reasoning: 'object' },
  adaptive: { reasoning: 'adaptive' },
  'adaptive-coarse': { reasoning: 'adaptive', efforts: ['low', 'medium'] },
  budget: { reasoning: 'budget' },
  level: { reasoning: 'level' },
};
const suffixes = [
  'low',
  'medium',
  'high',
  'thinking',
  'minimal',
  'xhigh',
  'max',
  'none',
  'nothinking',
] as const;

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ url }, response) => {
    const format = formats.find((name) => url.startsWith(`/${name}/`)) ?? 'messages';
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeReplies[format]));
  });
  gateway = await startGateway({
    plugins: [modelAlias({ extended: true })],
    channels: formats.flatMap((format) => {
      const kind = httpChannel({
        name: `bare-${format}`,
        baseUrl: `${upstream.url}/${format}`,
        needsKey: false,
        headers: () => ({}),
        speaks: { chat: [format] },
      });
      return Object.entries(styles).map(([style, traits]) =>
        kind({ id: `${format}.${style}`, models: [`${format}.${style}`], traits: { '*': traits } }),
      );
    }),
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

type Body = Record<string, unknown>;
const user = [{ role: 'user', content: 'Hi' }];
const loop = [
  ...user,
  { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'nothing' }] },
];

/** Requests of every client, also those in which there is little room for thinking or none. */
const clients: Readonly<Record<string, { format: FormatName; path: (model: string) => string; body: Body }>> =
  {
    'chat completions': {
      format: 'chat-completions',
      path: () => '/v1/chat/completions',
      body: { messages: user, temperature: 0.5 },
    },
    messages: {
      format: 'messages',
      path: () => '/v1/messages',
      body: { max_tokens: 100_000, messages: user },
    },
    'messages, short answers': {
      format: 'messages',
      path: () => '/v1/messages',
      body: { max_tokens: 500, messages: user, temperature: 0.5, top_k: 5 },
    },
    'messages, in a tool loop': {
      format: 'messages',
      path: () => '/v1/messages',
      body: { max_tokens: 9000, messages: loop, tools: [{ name: 'look', input_schema: { type: 'object' } }] },
    },
    generateContent: {
      format: 'generate-content',
      path: (model) => `/v1beta/models/${model}:generateContent`,
      body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    },
    responses: { format: 'responses', path: () => '/v1/responses', body: { input: 'Hi' } },
    'text completions': { format: 'text-completions', path: () => '/v1/completions', body: { prompt: 'Hi' } },
  };

interface Outcome {
  readonly status: number;
  readonly reported: readonly string[];
  /** Reasoning settings of the provider's request, decoded from its format. */
  readonly reasoning: Reasoning;
  readonly body: JsonObject;
}

async function sendCall(client: string, model: string, strict = false): Promise<Outcome> {
  const { path, body } = clients[client] ?? { path: () => '/', body: {} };
  upstream.requests.length = 0;
  const answer = await fetchRaw(gateway, path(model), {
    body: path('').startsWith('/v1beta') ? body : { model, ...body },
    headers: { 'anthropic-version': '2023-06-01', ...(strict ? { 'x-sluice-strict': 'true' } : {}) },
  });
  const [request] = upstream.requests;
  const format = formats.find((name) => request?.url.startsWith(`/${name}/`));
  const sent = JSON.parse(request?.body.toString() ?? '{}') as JsonObject;
  const decoded = format === undefined ? undefined : codecs[format].decodeRequest(sent, { model: 'm' });
  const header = String(answer.headers['x-sluice-loss'] ?? '');
  return {
    status: answer.status,
    reported: header === '' ? [] : header.split(', '),
    reasoning: decoded?.settings.reasoning ?? {},
    body: sent,
  };
}

/** True when the provider was asked for what the suffix says. */
function arrived(suffix: (typeof suffixes)[number], { mode, effort, budget, show }: Reasoning): boolean {
  const meant = effort ?? (budget === undefined ? undefined : effortOfBudget(budget));
  const isOff = mode === 'off' || meant === 'none';
  if (suffix === 'none' || suffix === 'nothinking') return isOff;
  // In generateContent models that have levels think unasked: there only the showing can be asked for.
  const on = mode !== undefined || meant !== undefined || budget === -1 || show === true;
  if (suffix === 'thinking') return !isOff && on;
  return meant === suffix;
}

/** A model that cannot think does as it is told when it is told not to. */
const cannotThink = (channel: FormatName, style: string): boolean =>
  channel === 'text-completions' || style === 'none' || style === 'refusing';

describe.each(Object.keys(clients))(
  'the effort of a suffix reaches the provider or is reported: %s',
  (client) => {
    test.each(formats)('channels of %s', async (channel) => {
      const from = clients[client]?.format;
      const unreported: string[] = [];
      const offset = Object.keys(clients).indexOf(client) + formats.indexOf(channel);
      for (const [nth, style] of Object.keys(styles).entries()) {
        const model = `${channel}.${style}`;
        const plain = await sendCall(client, model);
        // Text has no place for a history with tools.
        if (plain.status === 400) continue;
        expect(plain.status, `${client} → ${model}`).toBe(200);
        for (const suffix of selectRotating(suffixes, offset + nth, 5)) {
          const outcome = await sendCall(client, `${model}-${suffix}`);
          expect(outcome.status, `${client} → ${model}-${suffix}`).toBe(200);
          const news = outcome.reported.filter((path) => !plain.reported.includes(path));
          const done = (suffix === 'none' || suffix === 'nothinking') && cannotThink(channel, style);
          if (!done && !arrived(suffix, outcome.reasoning) && news.length === 0)
            unreported.push(`${from} → ${model}-${suffix}: ${JSON.stringify(outcome.body)}`);
        }
      }
      expect(unreported).toEqual([]);
    });
  },
);

test('what was put in the way of a wish is reported too: sampling that thinking forbids', async () => {
  const { body, reported } = await sendCall('messages, short answers', 'messages.adaptive-high');
  expect(body).not.toHaveProperty('temperature');
  expect(body).not.toHaveProperty('top_k');
  expect(reported).toEqual(['temperature', 'top_k']);
});

test('a strict client is refused what cannot be had, also on a channel of its own format', async () => {
  for (const client of Object.keys(clients)) {
    const format = clients[client]?.format;
    expect((await sendCall(client, `${format}.none-high`, true)).status, client).toBe(400);
    expect(upstream.requests, client).toEqual([]);
    expect((await sendCall(client, `${format}.none`, true)).status, client).toBe(200);
  }
});
