/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect -- one function judges every answer; what is expected depends on it. */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { httpChannel } from '../../channels/_kit/http/http-channel.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { selectRotating } from '../support/tries.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { wholeReplies } from './_wire.ts';

type Json = Record<string, unknown>;

const chatting = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;
const channels = [...chatting, 'text-completions'] as const;
type Channel = (typeof channels)[number];

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ url }, response) => {
    const channel = channels.find((name) => url.startsWith(`/${name}/`)) ?? 'messages';
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(wholeReplies[channel]));
  });
  gateway = await startGateway({
    channels: channels.map((format) =>
      httpChannel({
        name: `bare-${format}`,
        baseUrl: `${upstream.url}/${format}`,
        needsKey: false,
        headers: () => ({}),
        speaks: { chat: [format] },
      })({ id: format, models: [`via-${format}`] }),
    ),
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Wrong values of a field. */
const wrong: readonly unknown[] = [
  'words',
  '',
  '5',
  'NaN',
  'true',
  'x'.repeat(300_000),
  0,
  5,
  -1,
  1.5,
  -2.5,
  1e21,
  -1e21,
  1.7e308,
  2 ** 53,
  // 1e400 on the wire, which JSON allows and no number can hold.
  Infinity,
  true,
  false,
  null,
  [],
  {},
  [null],
  [5],
  ['words'],
  [[]],
  [{}],
  { type: 5 },
  { type: 'words' },
  { type: null, text: {} },
  [{ type: 'words', text: 5 }],
  Array.from({ length: 500 }, () => 'x'),
];

/** One field of a request: where it stands, and what must stand beside it for it to mean anything. */
interface Field {
  readonly path: string;
  readonly beside?: Json;
  /** Values that ask for nothing: a provider need not hear of them. */
  readonly idle?: readonly unknown[];
  /** Other fields that the error may name, because they conflict with the wrong value. */
  readonly orElse?: string;
}

const field = (path: string, more: Omit<Field, 'path'> = {}): Field => ({ path, ...more });

const user = { role: 'user', content: 'Hi' };
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const chatTools = { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] };
const chatCall = {
  messages: [
    user,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ],
  ...chatTools,
};
const chatParts = (part: Json): Json => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, part] }],
});
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const chat: readonly Field[] = [
  field('model'),
  field('messages'),
  field('messages[0]'),
  field('messages[0].role'),
  field('messages[0].content'),
  field('messages[0].name'),
  field('messages[1]', { beside: { messages: [user, { role: 'assistant', content: 'Ho' }, user] } }),
  field('messages[1].content', {
    beside: { messages: [user, { role: 'assistant', content: 'Ho' }, user] },
    idle: ['', []],
  }),
  field('messages[1].tool_calls', { beside: chatCall, idle: [[]], orElse: 'messages[2]' }),
  field('messages[1].tool_calls[0].id', { beside: chatCall, orElse: 'messages[2]' }),
  field('messages[1].tool_calls[0].type', { beside: chatCall }),
  field('messages[1].tool_calls[0].function', { beside: chatCall }),
  field('messages[1].tool_calls[0].function.name', { beside: chatCall }),
  field('messages[1].tool_calls[0].function.arguments', { beside: chatCall, idle: ['', {}] }),
  field('messages[2].tool_call_id', { beside: chatCall }),
  field('messages[2].content', { beside: chatCall }),
  field('messages[0].content[1].type', { beside: chatParts({ type: 'text', text: 'Ho' }) }),
  field('messages[0].content[1].text', { beside: chatParts({ type: 'text', text: 'Ho' }) }),
  field('messages[0].content[1].image_url', {
    beside: chatParts({ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }),
  }),
  field('messages[0].content[1].image_url.url', {
    beside: chatParts({ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }),
  }),
  field('stream', { idle: [false] }),
  field('stream_options', { idle: [{}] }),
  field('stream_options.include_usage', { beside: { stream_options: {} }, idle: [true, false] }),
  field('temperature'),
  field('top_p'),
  field('max_tokens'),
  field('max_completion_tokens'),
  field('reasoning_effort'),
  field('stop'),
  field('n', { idle: [1] }),
  field('frequency_penalty'),
  field('presence_penalty'),
  field('seed'),
  field('logprobs', { idle: [false] }),
  field('top_logprobs', { beside: { logprobs: true } }),
  field('tools', { idle: [[]] }),
  field('tools[0]', { beside: chatTools }),
  field('tools[0].type', { beside: chatTools }),
  field('tools[0].function', { beside: chatTools }),
  field('tools[0].function.name', { beside: chatTools }),
  field('tools[0].function.description', { beside: chatTools }),
  field('tools[0].function.parameters', { beside: chatTools, idle: [{}] }),
  field('tool_choice', { beside: chatTools }),
  field('tool_choice.type', {
    beside: { ...chatTools, tool_choice: { type: 'function', function: { name: 'f' } } },
  }),
  field('tool_choice.function', {
    beside: { ...chatTools, tool_choice: { type: 'function', function: { name: 'f' } } },
  }),
  field('tool_choice.function.name', {
    beside: { ...chatTools, tool_choice: { type: 'function', function: { name: 'f' } } },
  }),
  field('parallel_tool_calls', { beside: chatTools, idle: [true] }),
  field('response_format'),
  field('response_format.type', { beside: { response_format: { type: 'json_object' } } }),
  field('response_format.json_schema', {
    beside: { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
  }),
  field('response_format.json_schema.schema', {
    beside: { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
  }),
  field('response_format.json_schema.name', {
    beside: { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
  }),
  field('metadata', { idle: [{}] }),
  field('user'),
];

const responsesTools = { tools: [{ type: 'function', name: 'f', parameters: schema }] };
const responsesCall = {
  input: [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'done' },
  ],
  ...responsesTools,
};
const responsesParts = (part: Json): Json => ({
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }, part] }],
});

const responses: readonly Field[] = [
  field('model'),
  field('input'),
  field('input[0]', { beside: { input: [{ role: 'user', content: 'Hi' }] } }),
  field('input[0].role', { beside: { input: [{ role: 'user', content: 'Hi' }] } }),
  field('input[0].type', { beside: { input: [{ type: 'message', role: 'user', content: 'Hi' }] } }),
  field('input[0].content', { beside: { input: [{ role: 'user', content: 'Hi' }] } }),
  field('input[0].content[1]', { beside: responsesParts({ type: 'input_text', text: 'Ho' }) }),
  field('input[0].content[1].type', { beside: responsesParts({ type: 'input_text', text: 'Ho' }) }),
  field('input[0].content[1].text', { beside: responsesParts({ type: 'input_text', text: 'Ho' }) }),
  field('input[0].content[1].image_url', {
    beside: responsesParts({ type: 'input_image', image_url: `data:image/png;base64,${png}` }),
  }),
  field('input[0].content[1].file_data', {
    beside: responsesParts({
      type: 'input_file',
      filename: 'a.pdf',
      file_data: 'data:application/pdf;base64,JVBERi0=',
    }),
  }),
  field('input[1].call_id', { beside: responsesCall, orElse: 'input[2].call_id' }),
  field('input[1].name', { beside: responsesCall }),
  field('input[1].arguments', { beside: responsesCall, idle: ['', {}] }),
  field('input[2].call_id', { beside: responsesCall }),
  field('input[2].output', { beside: responsesCall }),
  field('instructions', { idle: [''] }),
  field('previous_response_id', { idle: [''] }),
  field('stream', { idle: [false] }),
  field('stream_options', { idle: [{}] }),
  field('stream_options.include_usage', { beside: { stream_options: {} }, idle: [true, false] }),
  field('temperature'),
  field('top_p'),
  field('max_output_tokens'),
  field('reasoning', { idle: [{}] }),
  field('reasoning.effort', { beside: { reasoning: {} } }),
  field('reasoning.summary', { beside: { reasoning: {} } }),
  field('tools', { idle: [[]] }),
  field('tools[0]', { beside: responsesTools }),
  field('tools[0].type', { beside: responsesTools }),
  field('tools[0].name', { beside: responsesTools }),
  field('tools[0].description', { beside: responsesTools }),
  field('tools[0].parameters', { beside: responsesTools, idle: [{}] }),
  field('tools[0].strict', { beside: responsesTools }),
  field('tool_choice', { beside: responsesTools }),
  field('tool_choice.type', { beside: { ...responsesTools, tool_choice: { type: 'function', name: 'f' } } }),
  field('tool_choice.name', { beside: { ...responsesTools, tool_choice: { type: 'function', name: 'f' } } }),
  field('truncation'),
  field('context_management', { idle: [[], {}] }),
  field('metadata', { idle: [{}] }),
  field('top_logprobs'),
  field('max_tool_calls'),
  field('text', { idle: [{}] }),
  field('text.format', { beside: { text: {} } }),
  field('text.format.type', { beside: { text: { format: { type: 'json_schema', name: 'a', schema } } } }),
  field('text.format.schema', { beside: { text: { format: { type: 'json_schema', name: 'a', schema } } } }),
  field('text.format.name', {
    beside: { text: { format: { type: 'json_schema', name: 'a', schema } } },
    idle: [''],
  }),
  field('text.verbosity', { beside: { text: {} } }),
  field('parallel_tool_calls', { beside: responsesTools, idle: [true] }),
  field('store', { idle: [true, false] }),
  field('include', { idle: [[]] }),
];

const messagesTools = { tools: [{ name: 'f', input_schema: schema }] };
const messagesCall = {
  messages: [
    user,
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'done' }] },
  ],
  ...messagesTools,
};
const messagesParts = (part: Json): Json => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, part] }],
});
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };

const messages: readonly Field[] = [
  field('model'),
  field('messages'),
  field('messages[0]'),
  field('messages[0].role'),
  field('messages[0].content'),
  field('messages[0].content[1]', { beside: messagesParts({ type: 'text', text: 'Ho' }) }),
  field('messages[0].content[1].type', { beside: messagesParts({ type: 'text', text: 'Ho' }) }),
  field('messages[0].content[1].text', { beside: messagesParts({ type: 'text', text: 'Ho' }) }),
  field('messages[0].content[1].source', { beside: messagesParts(image) }),
  field('messages[0].content[1].source.type', { beside: messagesParts(image) }),
  field('messages[0].content[1].source.media_type', { beside: messagesParts(image) }),
  field('messages[0].content[1].source.data', { beside: messagesParts(image) }),
  field('messages[0].content[1].source.url', {
    beside: messagesParts({ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }),
  }),
  field('messages[1].content[0].id', { beside: messagesCall, orElse: 'messages[2]' }),
  field('messages[1].content[0].name', { beside: messagesCall }),
  field('messages[1].content[0].input', { beside: messagesCall, idle: [{}] }),
  field('messages[2].content[0].tool_use_id', { beside: messagesCall }),
  field('messages[2].content[0].content', { beside: messagesCall, idle: ['', []] }),
  field('messages[2].content[0].is_error', { beside: messagesCall, idle: [false] }),
  field('max_tokens'),
  field('system', { idle: ['', []] }),
  field('stream', { idle: [false] }),
  field('temperature'),
  field('top_p'),
  field('top_k'),
  field('stop_sequences', { idle: [[]] }),
  field('tools', { idle: [[]] }),
  field('tools[0]', { beside: messagesTools }),
  field('tools[0].name', { beside: messagesTools }),
  field('tools[0].description', { beside: messagesTools }),
  field('tools[0].input_schema', { beside: messagesTools }),
  field('tools[0].input_schema.type', { beside: messagesTools }),
  field('tools[0].input_schema.properties', { beside: messagesTools, idle: [{}, []] }),
  field('tools[0].input_schema.required', { beside: messagesTools }),
  field('tool_choice', { beside: messagesTools }),
  field('tool_choice.type', { beside: { ...messagesTools, tool_choice: { type: 'tool', name: 'f' } } }),
  field('tool_choice.name', { beside: { ...messagesTools, tool_choice: { type: 'tool', name: 'f' } } }),
  field('tool_choice.disable_parallel_tool_use', {
    beside: { ...messagesTools, tool_choice: { type: 'auto' } },
    idle: [false],
  }),
  field('thinking'),
  field('thinking.type', { beside: { thinking: { type: 'enabled', budget_tokens: 1024 } } }),
  field('thinking.budget_tokens', { beside: { thinking: { type: 'enabled' } } }),
  field('metadata', { idle: [{}] }),
  field('metadata.user_id', { beside: { metadata: {} } }),
  field('output_config', { idle: [{}] }),
  field('output_config.effort', { beside: { output_config: {} } }),
  field('output_config.format', { beside: { output_config: {} } }),
  field('output_config.format.schema', {
    beside: { output_config: { format: { type: 'json_schema', schema } } },
  }),
];

const prompts: readonly Field[] = [
  field('model'),
  field('prompt'),
  field('prompt[0]', { beside: { prompt: ['Hi'] } }),
  field('max_tokens'),
  field('temperature'),
  field('top_p'),
  field('n', { idle: [1] }),
  field('stream', { idle: [false] }),
  field('stream_options', { idle: [{}] }),
  field('stream_options.include_usage', { beside: { stream_options: {} }, idle: [true, false] }),
  field('stop', { idle: [[]] }),
  field('seed'),
  field('frequency_penalty'),
  field('presence_penalty'),
  field('logprobs'),
  field('echo', { idle: [true, false] }),
  field('suffix', { idle: [''] }),
  field('best_of', { idle: [1] }),
  field('user'),
  field('logit_bias'),
];

interface Client {
  readonly format: Channel;
  readonly channels: readonly Channel[];
  readonly path: string;
  readonly base: Json;
  readonly fields: readonly Field[];
}

const clients: Readonly<Record<string, Client>> = {
  'chat completions': {
    format: 'chat-completions',
    channels: chatting,
    path: '/v1/chat/completions',
    base: { messages: [user] },
    fields: chat,
  },
  responses: {
    format: 'responses',
    channels: chatting,
    path: '/v1/responses',
    base: { input: 'Hi' },
    fields: responses,
  },
  messages: {
    format: 'messages',
    channels: chatting,
    path: '/v1/messages',
    base: { messages: [user], max_tokens: 4000 },
    fields: messages,
  },
  'text completions': {
    format: 'text-completions',
    channels,
    path: '/v1/completions',
    base: { prompt: 'Hi' },
    fields: prompts,
  },
};

const stepsOf = (path: string): string[] => path.replaceAll(/\[(\d+)\]/g, '.$1').split('.');

/** A copy with another value at the path; without one for undefined. */
function changed(body: Json, path: string, value: unknown): Json {
  const copy = structuredClone(body);
  const steps = stepsOf(path);
  const last = steps.pop() ?? '';
  let at: Json = copy;
  for (const step of steps) at = at[step] as Json;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

function valueAt(body: unknown, path: string): unknown {
  return stepsOf(path).reduce((at, step) => (at as Json | undefined)?.[step], body);
}

interface Judged {
  readonly status: number;
  readonly text: string;
  readonly losses: string;
  /** Request that the provider received; undefined when there was none. */
  readonly sent: Json | undefined;
}

async function sendAndJudge(client: Client, body: Json): Promise<Judged> {
  upstream.requests.length = 0;
  const response = await fetch(`${gateway.url}${client.path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
    },
    body: JSON.stringify(body, (_key, value: unknown) => (value === Infinity ? '1e400' : value)).replaceAll(
      '"1e400"',
      '1e400',
    ),
  });
  const text = await response.text();
  const [request] = upstream.requests;
  return {
    status: response.status,
    text,
    losses: response.headers.get('x-sluice-loss') ?? '',
    sent: request === undefined ? undefined : (JSON.parse(request.body.toString()) as Json),
  };
}

/** True when a text names the field, something in it, or one of the two things that it is part of. */
function names(text: string, path: string): boolean {
  const outer = path.replace(/(\.\w+|\[\d+\])$/, '');
  return [path, outer, outer.replace(/(\.\w+|\[\d+\])$/, '')].some((name) => text.includes(name));
}

const short = (value: unknown): string => (value === Infinity ? '1e400' : JSON.stringify(value).slice(0, 60));

describe.each(Object.entries(clients))('%s: a field that is not what it should be', (_name, client) => {
  test.each(client.fields)(
    '$path is refused by its name, or reaches the provider, or is reported',
    async ({ path, beside = {}, idle = [], orElse = path }) => {
      const problems: string[] = [];
      const nth = client.fields.findIndex((one) => one.path === path);
      for (const channel of client.channels) {
        const model = `via-${channel}`;
        const base: Json = { model, ...client.base, ...beside };
        const plain =
          path === 'model' ? undefined : await sendAndJudge(client, changed(base, path, undefined));
        for (const [index, value] of selectRotating(wrong, nth, 2).entries()) {
          // Each field goes to every channel, and each value does, but not each of its values.
          if (!selectRotating(client.channels, Math.floor(nth / 2) + index).includes(channel)) continue;
          // A stream would want another answer of the provider's; a field in a string is none.
          if (path === 'stream' && value === true) continue;
          const { status, text, losses, sent } = await sendAndJudge(client, changed(base, path, value));
          const reportProblem = (what: string): void =>
            void problems.push(
              `${channel} ${path} = ${short(value)}: ${status} ${what}\n  ${text.slice(0, 300)}`,
            );
          if (path === 'model' && status === 503) continue;
          // Several answers are several requests where the provider makes one for each.
          if (path === 'n' && status === 200 && answersIn(text) === value) continue;
          if (status === 400) {
            if (sent !== undefined) reportProblem('after the provider was asked');
            else if (!names(text, path) && !names(text, orElse)) reportProblem('that does not name it');
            continue;
          }
          if (status !== 200) {
            reportProblem('');
            continue;
          }
          // What is null is not given.
          if (value === null || idle.some((one) => isDeepStrictEqual(one, value))) continue;
          const reached =
            channel === client.format
              ? isDeepStrictEqual(valueAt(sent, path), value)
              : plain?.status !== 200 || !isDeepStrictEqual(plain.sent, sent);
          if (!reached && !names(losses, path))
            reportProblem(`and nobody hears of it: ${losses} ${JSON.stringify(sent).slice(0, 400)}`);
        }
      }
      expect(problems).toEqual([]);
    },
  );
});

/** Number of answers in a reply of chat completions; undefined where it is none. */
function answersIn(text: string): number | undefined {
  try {
    return (JSON.parse(text) as { choices?: readonly unknown[] }).choices?.length;
  } catch {
    return undefined;
  }
}
