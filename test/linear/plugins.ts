import { concat, defer, from, throwError, type Observable } from 'rxjs';
import type { z } from 'zod';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { caller } from '../../core/sdk/caller.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import { openResponseStore } from '../../core/state/responses/open.ts';
import auth from '../../plugins/auth.ts';
import channelLimits from '../../plugins/channel-limits.ts';
import compaction from '../../plugins/compaction/index.ts';
import continuation from '../../plugins/continuation/index.ts';
import guard from '../../plugins/guard/index.ts';
import logging from '../../plugins/logging.ts';
import metrics from '../../plugins/metrics/index.ts';
import modelAccess from '../../plugins/model-access.ts';
import modelAlias from '../../plugins/model-alias.ts';
import promptList from '../../plugins/prompt-list.ts';
import quota from '../../plugins/quota/index.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import reasoningAffinity from '../../plugins/reasoning-affinity.ts';
import reasoningVault from '../../plugins/reasoning-vault/index.ts';
import requestId from '../../plugins/request-id.ts';
import sessionAffinity from '../../plugins/session-affinity.ts';
import storedResponses from '../../plugins/stored-responses/index.ts';
import translation from '../../plugins/translation/index.ts';
import usageLog from '../../plugins/usage-log/index.ts';
import { bytesOf, pieces, streams } from './codecs.ts';
import type { Work } from './measure.ts';
import {
  PluginBench,
  row,
  shortReply,
  type BenchCall,
  type Definition,
  type Replies,
} from './plugin-bench.ts';
import { replyShapes, type ReplyShape } from './replies.ts';
import { chatFormats, members, requestShapes, times, type ChatFormat } from './requests.ts';

/** The shapes of requests with these words in their names. */
const requestsOf = (names: RegExp) => requestShapes.filter(({ name }) => names.test(name));
const repliesOf = (names: RegExp): readonly ReplyShape[] =>
  replyShapes.filter(({ name }) => names.test(name));
const most = (bounded: number | undefined): Partial<Work> => (bounded === undefined ? {} : { most: bounded });

/** Requests of these shapes, each in another format. */
function ofRequests<Schema extends z.ZodType>(
  bench: PluginBench,
  plugin: Definition<Schema>,
  options: z.input<Schema> | undefined,
  names: RegExp,
  more: Partial<BenchCall> = {},
  only?: ChatFormat,
  replies?: Replies,
): Work[] {
  return requestsOf(names).map((shape, index) => {
    const format = only ?? chatFormats[index % chatFormats.length] ?? 'messages';
    return row(
      bench,
      plugin,
      options,
      `requests: ${shape.name} (${format})`,
      (size) => {
        const body = shape.make(format, size);
        return {
          bytes: bytesOf(body),
          input: { format, body, ...more },
          ...(replies === undefined ? {} : { replies }),
        };
      },
      most(shape.most),
    );
  });
}

const guarding: NonNullable<Parameters<typeof guard>[0]> = {
  checks: [{ name: 'all', kind: 'entities', entities: ['all'], action: 'mask', restore: true }],
};

const hello = (format: ChatFormat): JsonObject => requestShapes[0]?.make(format, 1) ?? {};

/** Replies of these shapes to a short request. */
function ofReplies<Schema extends z.ZodType>(
  bench: PluginBench,
  plugin: Definition<Schema>,
  options: z.input<Schema> | undefined,
  names: RegExp,
  more: Partial<BenchCall> = {},
): Work[] {
  return repliesOf(names).map((shape) =>
    row(bench, plugin, options, `replies: ${shape.name}`, (size) => {
      const events = shape.make(size);
      const format = more.format ?? 'chat-completions';
      return {
        bytes: bytesOf(events),
        input: { format, body: more.body ?? hello(format as ChatFormat), stream: true, ...more },
        replies: [from(events)],
      };
    }),
  );
}

const anything = /./;
const histories = /message|roles|parts|calls|thinking|thought|instructions|escaped|long word/;
/** Returns a pass-through stream of these bytes. */
const frames = (bytes: Buffer, length: number): Observable<GatewayEvent> =>
  from([
    { type: 'answer', status: 200, headers: { 'content-type': 'text/event-stream' } } as const,
    ...Array.from(pieces(bytes, length), (piece): GatewayEvent => ({ type: 'bytes', bytes: piece })),
  ]);

const opening = (text: string): string =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"${text}"},"finish_reason":null}]}\n\n`;
const ending =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** Streams and whole replies that pass a channel of the client's own format as they are. */
function passing(bench: PluginBench): Work[] {
  const bodies: readonly { readonly name: string; make(size: number): string }[] = [
    ...streams.flatMap(({ name, make }) => [
      { name: `${name}, then words`, make: (size: number) => make(size) + opening('a') + ending },
      { name: `words, then ${name}`, make: (size: number) => opening('a') + make(size) + ending },
    ]),
    { name: 'many short frames', make: (size) => opening('a').repeat(size) + ending },
    {
      name: 'many frames that speak of errors',
      make: (size) => opening('\\"error\\"').repeat(size) + opening('b') + ending,
    },
    {
      name: 'usage in each frame',
      make: (size) =>
        `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n`.repeat(
          size,
        ) +
        opening('a') +
        ending,
    },
  ];
  const callOf = (model: string): BenchCall => ({
    format: 'chat-completions',
    body: { messages: [{ role: 'user', content: 'hello' }] },
    stream: true,
    model,
    attempt: true,
  });
  return bodies.flatMap(({ name, make }) =>
    [64, 64 * 1024].flatMap((read) =>
      [false, true].map((isRenamed) =>
        row(
          bench,
          translation,
          undefined,
          `passing ${isRenamed ? 'under another name ' : ''}in reads of ${read} bytes: ${name}`,
          (size) => {
            const bytes = Buffer.from(make(size));
            return {
              bytes: bytes.length,
              input: { ...callOf('chat'), ...(isRenamed ? { edits: { model: 'm' } } : {}) },
              replies: [frames(bytes, read)],
            };
          },
        ),
      ),
    ),
  );
}

/** A summary, as the model that compacts writes it. */
const items = (size: number, make: (index: number) => JsonObject[]): JsonObject[] => times(size, make).flat();

function compacting(bench: PluginBench): Work[] {
  const contexts: readonly { readonly name: string; make(size: number): JsonObject[] }[] = [
    { name: 'many messages', make: (size) => times(size, () => ({ role: 'user', content: 'hello' })) },
    {
      name: 'calls and their outputs',
      make: (size) =>
        items(size, (index) => [
          { type: 'function_call', call_id: `c${index}`, name: 'look', arguments: '{}' },
          { type: 'function_call_output', call_id: `c${index}`, output: 'found' },
        ]),
    },
    {
      name: 'calls whose outputs come last',
      make: (size) => [
        ...times(size, (index) => ({
          type: 'function_call',
          call_id: `c${index}`,
          name: 'look',
          arguments: '{}',
        })),
        ...times(size, (index) => ({
          type: 'function_call_output',
          call_id: `c${size - 1 - index}`,
          output: 'found',
        })),
      ],
    },
    { name: 'one long message', make: (size) => [{ role: 'user', content: 'a '.repeat(32 * size) }] },
    {
      name: 'triggers in the history',
      make: (size) => items(size, () => [{ role: 'user', content: 'hello' }, { type: 'compaction_trigger' }]),
    },
    {
      name: 'thoughts and messages',
      make: (size) =>
        items(size, (index) => [
          { type: 'reasoning', id: `rs_${index}`, summary: [], encrypted_content: 'c2ln' },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'so' }] },
          { role: 'user', content: 'go on' },
        ]),
    },
  ];
  const compactions: readonly {
    readonly name: string;
    readonly input: Partial<BenchCall>;
    readonly body: JsonObject;
  }[] = [
    { name: 'asked to compact', input: { operation: 'compact' }, body: {} },
    {
      name: 'over its threshold',
      input: {},
      body: { context_management: [{ type: 'compaction', compact_threshold: 1000 }] },
    },
    {
      name: 'near its threshold',
      input: {},
      body: { context_management: [{ type: 'compaction', compact_threshold: 100_000 }] },
    },
  ];
  return contexts.flatMap((history) =>
    compactions.map(({ name, input: baseCall, body }) =>
      row(bench, compaction, { threshold: 1000 }, `${name}: ${history.name}`, (size) => {
        const whole = { ...body, input: [...history.make(size), { role: 'user', content: 'and now?' }] };
        return {
          bytes: bytesOf(whole),
          input: { format: 'responses', model: 'chat', body: whole, attempt: true, ...baseCall },
        };
      }),
    ),
  );
}

/** Answers that break, and are gone on with. */
function goingOn(bench: PluginBench): Work[] {
  const broken = new GatewayError('upstream_error', 'It broke.', { origin: 'upstream', retryable: true });
  return repliesOf(/text|word|sources|usage/).map((shape) =>
    row(bench, continuation, { pause: 0 }, `answers that break: ${shape.name}`, (size) => {
      const events = shape.make(size);
      const before = events.filter(({ type }) => type !== 'finish');
      return {
        bytes: 3 * bytesOf(events),
        input: { format: 'messages', body: hello('messages'), stream: true, attempt: true },
        replies: [
          concat(
            from(before),
            defer(() => throwError(() => broken)),
          ),
          concat(
            from(before),
            defer(() => throwError(() => broken)),
          ),
          from(events),
        ],
      };
    }),
  );
}

function stored(bench: PluginBench): Work[] {
  const store = openResponseStore(bench.tools.stores);
  let turns = 0;
  const kept = async (output: readonly JsonObject[], owner: string): Promise<string> => {
    turns += 1;
    const id = `resp_${turns}`;
    const now = Math.floor(Date.now() / 1000);
    await store.save({
      id,
      owner,
      createdAt: now,
      expiresAt: now + 3600,
      response: { id, object: 'response', status: 'completed', output },
      input: [],
    });
    return id;
  };
  const messageOf = (id: string): JsonObject => ({
    id,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'hello', annotations: [] }],
  });
  const owner = bench.call({ format: 'responses', body: hello('responses') }).call.get(caller)?.id ?? '';
  const follow = (name: string, input: (size: number) => readonly JsonObject[]): Work =>
    row(bench, storedResponses, undefined, `after a long turn: ${name}`, async (size) => {
      const output = times(size, (index) => messageOf(`msg_${turns}_${index}`));
      const places = output.map(({ id }) => ({ type: 'item_reference', id }) as JsonObject);
      const previous = await kept(output, owner);
      const own = input(size);
      const body = { previous_response_id: previous, input: own.length === 0 ? places : own };
      return { bytes: bytesOf(body) + bytesOf(output), input: { format: 'responses', body } };
    });
  return [
    follow('one message', () => [{ role: 'user', content: 'and now?' }]),
    follow('many messages', (size) => times(size, () => ({ role: 'user', content: 'and now?' }))),
    follow('references to all of it', () => []),
    ...ofRequests(bench, storedResponses, undefined, histories, {}, 'responses'),
    ...ofReplies(bench, storedResponses, undefined, anything, { format: 'responses', model: 'responses' }),
  ];
}

/** Every plugin alone, with what makes it work. */
export function pluginWork(bench: PluginBench): Work[] {
  const budgets: NonNullable<ApiKey['budgets']> = [{ unit: 'token', period: 'day', amount: 1e15 }];
  const lists = (size: number): GatewayEvent[] =>
    [
      {
        type: 'models',
        models: times(size, (index) => ({ id: `model-${index}`, created: 1, ownedBy: 'us' })),
      },
    ] as unknown as GatewayEvent[];
  const baseCall: BenchCall = { format: 'messages', body: hello('messages') };
  return [
    ...[
      {
        name: 'a long wrong key',
        headers: (size: number): Record<string, string> => ({ authorization: `Bearer ${'k'.repeat(size)}` }),
      },
      {
        name: 'a long header',
        headers: (size: number): Record<string, string> => ({ 'x-api-key': ' '.repeat(size) }),
      },
    ].map(({ name, headers }) =>
      row(bench, auth, { failures: 0 }, name, (size) => ({
        bytes: size,
        input: { ...baseCall, headers: headers(size) },
      })),
    ),
    row(bench, auth, { failures: 0 }, 'a long query', (size) => ({
      bytes: 8 * size,
      input: {
        ...baseCall,
        query: times(size, (index) => `key${index}=a`).join('&'),
        headers: { 'x-api-key': bench.secret },
      },
    })),
    row(bench, requestId, undefined, 'a long id', (size) => ({
      bytes: 64 * size,
      input: { ...baseCall, headers: { 'x-request-id': 'a'.repeat(64 * size) } },
    })),
    ...[logging, metrics, usageLog].flatMap((plugin: Definition<z.ZodType>) => [
      ...ofReplies(bench, plugin, undefined, anything),
      ...[
        {
          name: 'many losses',
          event: (index: number): object => ({
            type: 'loss',
            loss: { path: `odd_${index}`, kind: 'setting', from: 'messages', to: 'responses' },
          }),
        },
        {
          name: 'many attempts',
          event: (): object => ({ type: 'attempt', channel: 'c', model: 'm', failure: 'upstream_error' }),
        },
      ].map(({ name, event }) =>
        row(bench, plugin, undefined, `replies: ${name}`, (size) => {
          const events = times(size, event) as unknown as GatewayEvent[];
          return { bytes: bytesOf(events), input: baseCall, replies: [from([...events, ...shortReply])] };
        }),
      ),
    ]),
    ...ofRequests(bench, usageLog, { capture: { redact: ['messages.*.content', '/\\d{16}/'] } }, anything),
    ...ofReplies(bench, usageLog, { capture: { redact: ['messages.*.content', '/\\d{16}/'] } }, anything),
    ...ofRequests(bench, rateLimit, { default: { tokensPerMinute: 1e15, requestsPerMinute: 1e9 } }, anything),
    ...ofReplies(bench, rateLimit, { default: { tokensPerMinute: 1e15 } }, /usage|tiny/),
    ...ofRequests(bench, channelLimits, { channels: { openai: { tokensPerMinute: 1e15 } } }, histories, {
      attempt: true,
    }),
    ...ofRequests(bench, quota, undefined, anything, { key: { budgets } }),
    ...ofReplies(bench, quota, undefined, anything, { key: { budgets } }),
    ...ofRequests(
      bench,
      modelAlias,
      { suffixes: true },
      histories,
      { model: 'chat-high' },
      'chat-completions',
    ),
    row(bench, modelAccess, undefined, 'a key of many models', (size) => ({
      bytes: 10 * size,
      input: { ...baseCall, key: { models: [...times(size, (index) => `other-${index}*`), 'messages'] } },
    })),
    row(bench, modelAccess, undefined, 'a list of many models', (size) => ({
      bytes: 30 * size,
      input: { ...baseCall, operation: 'list-models', key: { models: ['model-1*', 'other-*'] } },
      replies: [from(lists(size))],
    })),
    row(bench, modelAccess, undefined, 'unknown members where a provider chooses', (size) => ({
      bytes: bytesOf(members(size)),
      input: {
        format: 'chat-completions',
        model: 'routed',
        body: { ...hello('chat-completions'), ...members(size) },
        key: { models: ['routed'] },
      },
    })),
    row(bench, sessionAffinity, undefined, 'a long name', (size) => ({
      bytes: 64 * size,
      input: {
        format: 'chat-completions',
        body: { ...hello('chat-completions'), prompt_cache_key: 'a'.repeat(64 * size) },
      },
    })),
    ...ofRequests(bench, guard, guarding, /roles|escaped|texts|calls|results|many tools/),
    ...ofReplies(bench, guard, guarding, anything),
    ...['111 ', '4111 1111-', 'a.', '-----BEGIN PRIVATE KEY-----\nVersion: '].map((part) =>
      row(bench, guard, guarding, `text that is nearly an entity: ${part.trim()}`, (size) => ({
        bytes: part.length * 10 * size,
        input: {
          format: 'messages',
          body: { max_tokens: 10, messages: [{ role: 'user', content: part.repeat(10 * size) }] },
        },
      })),
    ),
    ...ofRequests(bench, reasoningAffinity, undefined, histories),
    ...ofRequests(bench, reasoningVault, undefined, histories, { attempt: true }),
    ...ofReplies(bench, reasoningVault, undefined, /thought|call|text|word/, {
      format: 'messages',
      attempt: true,
    }),
    ...stored(bench),
    ...compacting(bench),
    ...goingOn(bench),
    ...ofReplies(bench, promptList, undefined, /tiny|many texts|choices|usage/, {
      format: 'text-completions',
      model: 'chat',
      body: { prompt: ['one', 'two'] },
    }),
    ...ofRequests(
      bench,
      translation,
      undefined,
      /roles|escaped|many tools/,
      { attempt: true, stream: true, edits: { model: 'm' } },
      'chat-completions',
      [frames(Buffer.from(opening('a') + ending), 64 * 1024)],
    ),
    ...passing(bench),
  ];
}
