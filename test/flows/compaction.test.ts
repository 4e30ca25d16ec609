import OpenAI from 'openai';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { bearer, httpChannel } from '../../channels/_kit/http/http-channel.ts';
import demo from '../../channels/demo/index.ts';
import groq from '../../channels/groq.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import compactionPlugin from '../../plugins/compaction/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { checkLegal } from '../support/legal-responses.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startProcess } from './_process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface Wire {
  readonly [key: string]: unknown;
}

type Item = Wire & { readonly type?: string; readonly encrypted_content?: string };
type Answer = Wire & {
  readonly output: Item[];
  readonly usage: {
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly total_tokens: number;
  };
  readonly error?: { readonly message: string; readonly param: string; readonly code: string };
};

const native = httpChannel({
  name: 'native',
  baseUrl: 'http://127.0.0.1:1',
  headers: bearer,
  speaks: { chat: ['responses'], compact: ['responses'] },
});

let provider: ScriptedUpstream;
let compacting: ScriptedUpstream;
let gateway: TestGateway;
/** Replies of the chat provider in order; the last one repeats. */
let says: (string | number)[];

/** A chat completion: 100 tokens in, 10 out. */
const completion = (content: string) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
});

/** The same as a stream. */
function chunks(content: string): string {
  const { choices: _choices, usage, ...head } = completion(content);
  const chunk = (fields: Wire): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...fields })}\n\n`;
  return [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage }),
    'data: [DONE]\n\n',
  ].join('');
}

beforeAll(async () => {
  provider = await startUpstream((request, response) => {
    const scripted = (says.length > 1 ? says.shift() : says[0]) ?? '';
    if (typeof scripted === 'number') {
      response.writeHead(scripted, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'No.', type: 'server_error' } }));
      return;
    }
    if (scripted === '(never)') return;
    const streamed = (JSON.parse(request.body.toString()) as Wire).stream === true;
    response.writeHead(200, { 'content-type': streamed ? 'text/event-stream' : 'application/json' });
    response.end(streamed ? chunks(scripted) : JSON.stringify(completion(scripted)));
  });
  compacting = await startUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(
        request.url === '/responses/compact'
          ? {
              id: 'resp_native',
              object: 'response.compaction',
              created_at: 1,
              output: [{ id: 'cmp_native', type: 'compaction', encrypted_content: 'gAAAA-own' }],
              usage: usageOf(7, 3),
            }
          : {
              id: 'resp_native',
              object: 'response',
              created_at: 1,
              status: 'completed',
              model: 'n',
              output: [
                {
                  id: 'msg_native',
                  type: 'message',
                  status: 'completed',
                  role: 'assistant',
                  content: [{ type: 'output_text', text: 'native', annotations: [] }],
                },
              ],
              usage: usageOf(20, 5),
            },
      ),
    );
  });
  gateway = await startGateway({
    // The provider fails in some of the tests: none is about what follows from that.
    health: { enabled: false },
    channels: [
      groq({ key: 'k', baseUrl: provider.url, models: ['chat'] }),
      groq({
        id: 'small',
        key: 'k',
        baseUrl: provider.url,
        models: ['small'],
        traits: { '*': { inputLimit: 500 } },
      }),
      groq({ id: 'a', key: 'k', baseUrl: provider.url, models: ['twice'], priority: 1 }),
      groq({ id: 'b', key: 'k', baseUrl: provider.url, models: ['twice'] }),
      native({ key: 'k', baseUrl: compacting.url, models: ['native'] }),
      demo({ id: 'demo-chat', speaks: ['chat-completions'], models: { 'demo-chat': 'demo' } }),
      demo({ id: 'demo-messages', speaks: ['messages'], models: { 'demo-messages': 'demo' } }),
      demo({ id: 'demo-generate', speaks: ['generate-content'], models: { 'demo-generate': 'demo' } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await provider.close();
  await compacting.close();
});
beforeEach(() => {
  says = ['The summary.', 'The answer.'];
  provider.requests.length = 0;
  compacting.requests.length = 0;
});

function usageOf(input: number, output: number): Wire {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}

interface Replied {
  readonly status: number;
  readonly loss: string | null;
  readonly body: Answer;
}

async function post(path: string, body: Wire, { key, url } = gateway): Promise<Replied> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ store: false, ...body }),
  });
  return {
    status: response.status,
    loss: response.headers.get('x-sluice-loss'),
    body: (await response.json()) as Answer,
  };
}

async function stream(path: string, body: Wire): Promise<Wire[]> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ store: false, stream: true, ...body }),
  });
  const events = parseSse(Buffer.from(await response.arrayBuffer()));
  expect(events.pop()?.data).toBe('[DONE]');
  const frames = events.map(({ event, data }) => ({
    event: event ?? '',
    json: JSON.parse(data) as JsonObject,
  }));
  expect(checkLegal(frames)).toEqual([]);
  return frames.map(({ json }) => json);
}

/** The response in the last event. */
function last(events: readonly Wire[]): Answer {
  return (events.at(-1) ?? {}).response as Answer;
}

/** The messages that the chat provider got with its last request, or with an earlier one. */
function sent(index = -1, upstream = provider): Wire & { messages: { role: string; content: unknown }[] } {
  return JSON.parse(upstream.requests.at(index)?.body.toString() ?? '{}') as ReturnType<typeof sent>;
}

const user = (content: string): Item => ({ role: 'user', content });
const assistant = (content: string): Item => ({ role: 'assistant', content });
const long = 'word '.repeat(400);
const history = [user(`My dog is called Rex. ${long}`), assistant('A fine name.'), user('What is 2 + 2?')];
const text = ({ output }: Answer): unknown =>
  (output.at(-1)?.content as { text: string }[] | undefined)?.map((part) => part.text).join('');

describe('POST /v1/responses/compact, where the provider does not compact', () => {
  test('answers with the user’s messages and one sealed item, and tells what the summary cost', async () => {
    const { status, body } = await post('/v1/responses/compact', { model: 'chat', input: history });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'response.compaction', id: expect.stringMatching(/^resp_/) });
    expect(body.output.map(({ type, role }) => [type, role])).toEqual([
      ['message', 'user'],
      ['message', 'user'],
      ['compaction', undefined],
    ]);
    expect(body.output[1]).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      status: 'completed',
      content: [{ type: 'input_text', text: 'What is 2 + 2?' }],
    });
    const [item] = body.output.slice(-1);
    expect(item?.encrypted_content).toMatch(/^slc1\./);
    expect(Buffer.from(item?.encrypted_content ?? '', 'base64url').toString('latin1')).not.toContain(
      'summary',
    );
    expect(body.usage).toEqual(usageOf(100, 10));
  });

  test('asks the model once, without tools, for a summary of everything', async () => {
    await post('/v1/responses/compact', {
      model: 'chat',
      instructions: 'Be a pirate.',
      input: [
        ...history,
        { type: 'function_call', call_id: 'c1', name: 'sum', arguments: '{"a":2}' },
        { type: 'function_call_output', call_id: 'c1', output: 'four' },
      ],
    });
    expect(provider.requests).toHaveLength(1);
    const { messages, tools, model } = sent();
    expect(tools).toBeUndefined();
    expect(model).toBe('chat');
    const sentText = JSON.stringify(messages);
    expect(sentText).toContain('Rex');
    expect(sentText).toContain('[called sum]');
    expect(sentText).toContain('[result of sum] four');
    expect(messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('Open tasks:') });
    expect(messages.every((message) => !('tool_calls' in message))).toBe(true);
  });

  test('what it gave is the start of the next input: the model reads the summary in its place', async () => {
    const { body } = await post('/v1/responses/compact', { model: 'chat', input: history });
    says = ['Four.'];
    const next = await post('/v1/responses', { model: 'chat', input: [...body.output, user('And 3 + 3?')] });
    expect(next.status).toBe(200);
    expect(text(next.body)).toBe('Four.');
    const { messages } = sent();
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'user',
      expect.stringMatching(/system|developer/),
      'user',
    ]);
    expect(JSON.stringify(messages[2])).toContain('The summary.');
    expect(JSON.stringify(messages)).not.toContain('slc1');
  });

  test('a call that still wants its output is kept for the next request', async () => {
    const call = { type: 'function_call', call_id: 'c9', name: 'sum', arguments: '{"a":2}' };
    const { body } = await post('/v1/responses/compact', { model: 'chat', input: [...history, call] });
    const next = await post('/v1/responses', {
      model: 'chat',
      input: [...body.output, { type: 'function_call_output', call_id: 'c9', output: 'four' }],
    });
    expect(next.status).toBe(200);
    expect(JSON.stringify(sent().messages)).toContain('c9');
  });

  test('works with the official client, on demos of every format', async () => {
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` });
    for (const model of ['demo-chat', 'demo-messages', 'demo-generate']) {
      // oxlint-disable-next-line no-await-in-loop
      const compacted = await client.responses.compact({ model, input: 'Rex is a dog.' });
      expect(compacted.object).toBe('response.compaction');
      expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
      expect(compacted.usage.output_tokens).toBeGreaterThan(0);
      // oxlint-disable-next-line no-await-in-loop
      const next = await client.responses.create({
        model,
        store: false,
        input: [
          ...(compacted.output as OpenAI.Responses.ResponseInputItem[]),
          { role: 'user', content: 'Hello!' },
        ],
      });
      expect(next.output_text).toMatch(/^You said: [^]*Hello!$/);
    }
  });

  test('an empty context is refused, and so is a model without words', async () => {
    const empty = await post('/v1/responses/compact', { model: 'chat', input: [] });
    expect([empty.status, empty.body.error?.param]).toEqual([400, 'input']);
    says = ['  '];
    const mute = await post('/v1/responses/compact', { model: 'chat', input: 'x' });
    expect([mute.status, mute.body.error?.message]).toEqual([
      502,
      'The model returned no summary of the conversation.',
    ]);
  });

  test('the provider’s refusal is the answer', async () => {
    says = [429];
    expect((await post('/v1/responses/compact', { model: 'chat', input: 'x' })).status).toBe(429);
  });

  test('generates when asked to: the compaction first, then the answer over it', async () => {
    const { body } = await post('/v1/responses/compact', { model: 'chat', input: history, generate: true });
    expect(body.object).toBe('response');
    expect(body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(text(body)).toBe('The answer.');
    expect(body.usage).toMatchObject(usageOf(200, 20));
    expect(JSON.stringify(sent().messages)).not.toContain('Rex');
    expect(sent().messages.at(-1)).toMatchObject({ role: 'user', content: 'What is 2 + 2?' });
  });

  test('takes instructions for the summary, and does not generate when told not to', async () => {
    const { status, loss, body } = await post('/v1/responses/compact', {
      model: 'chat',
      input: history,
      generate: false,
      stream: false,
      context_management: { edits: [{ type: 'compact_20260112', instructions: 'Only the names.' }] },
    });
    expect([status, loss, body.object]).toEqual([200, null, 'response.compaction']);
    expect(sent().messages.at(-1)?.content).toBe('Only the names.');
  });

  test('a strategy of a name that nobody knows is reported, and it is compacted all the same', async () => {
    for (const model of ['chat', 'native']) {
      // oxlint-disable-next-line no-await-in-loop
      const { status, loss, body } = await post('/v1/responses/compact', {
        model,
        input: history,
        context_management: { strategy: 'sometimes' },
      });
      expect([status, body.object]).toEqual([200, 'response.compaction']);
      expect(loss).toContain('context_management.strategy');
    }
    expect(sent(-1, compacting).context_management).toBeUndefined();
  });

  test('streams when asked to', async () => {
    const events = await stream('/v1/responses/compact', { model: 'chat', input: history });
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 4)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.compaction.compacting',
    ]);
    expect(types.at(-1)).toBe('response.completed');
    expect(events.map(({ sequence_number: number }) => number)).toEqual(types.map((_, index) => index));
    const { output } = last(events);
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(sent().stream).toBe(true);
  });
});

describe('a sealed item', () => {
  const compacted = async (): Promise<Item> => {
    const { body } = await post('/v1/responses/compact', { model: 'chat', input: 'Rex is a dog.' });
    return body.output.at(-1) ?? {};
  };
  const refusal = ({ status, body: { error } }: Replied): unknown => ({
    status,
    param: error?.param,
    isNamed: error?.message.includes(error.param),
  });
  const refusedAt = (param: string): unknown => ({ status: 400, param, isNamed: true });

  test('of another key is refused by name, on every path and channel', async () => {
    const item = await compacted();
    const { value: key } = await gateway.apiKeys.create({ name: 'another' });
    const before = provider.requests.length;
    const stranger = { ...gateway, key };
    for (const path of ['/v1/responses', '/v1/responses/compact', '/v1/responses/input_tokens']) {
      for (const model of ['chat', 'native']) {
        // oxlint-disable-next-line no-await-in-loop
        expect(refusal(await post(path, { model, input: [user('x'), item] }, stranger))).toEqual(
          refusedAt('input[1].encrypted_content'),
        );
      }
    }
    expect(provider.requests).toHaveLength(before);
    expect(compacting.requests).toHaveLength(0);
  });

  test('that was changed is refused by name', async () => {
    const item = await compacted();
    const seal = item.encrypted_content ?? '';
    const middle = seal.length >> 1;
    const changed = seal.slice(0, middle) + (seal[middle] === 'A' ? 'B' : 'A') + seal.slice(middle + 1);
    for (const encrypted_content of [changed, seal.slice(0, -1), 'slc1.', '']) {
      const input = [{ ...item, encrypted_content }, user('x')];
      // oxlint-disable-next-line no-await-in-loop
      expect(refusal(await post('/v1/responses', { model: 'chat', input }))).toEqual(
        refusedAt('input[0].encrypted_content'),
      );
    }
  });

  test('that a provider made goes to a provider that may know it, and to no other', async () => {
    const input = [{ type: 'compaction', encrypted_content: 'gAAAA-own' }, user('x')];
    expect((await post('/v1/responses', { model: 'native', input })).status).toBe(200);
    expect(sent(-1, compacting).input).toEqual(input);
    expect(refusal(await post('/v1/responses', { model: 'chat', input }))).toEqual(
      refusedAt('input[0].encrypted_content'),
    );
  });

  test('is opened also for a provider that compacts by itself', async () => {
    const item = await compacted();
    const { status } = await post('/v1/responses', { model: 'native', input: [item, user('x')] });
    expect(status).toBe(200);
    const { input } = sent(-1, compacting) as { input?: Item[] };
    expect(input?.map(({ role }) => role)).toEqual(['developer', 'user']);
    expect(JSON.stringify(input)).toContain('The summary.');
  });

  test('counts as what it stands for', async () => {
    const item = await compacted();
    const count = async (input: Item[]): Promise<unknown> =>
      (await post('/v1/responses/input_tokens', { model: 'chat', input })).body.input_tokens;
    const tokens = Number(await count([item, user('x')]));
    expect(tokens).toBeGreaterThan(Number(await count([user('x')])) + 20);
    expect(tokens).toBeLessThan(100);
  });

  test('is opened by another process on the same database, and after a restart', async () => {
    const folder = temporaryFolder();
    const root = join(import.meta.dirname, '../..');
    const members = `database: 'sqlite:${join(folder, 'sluice.db')}', channels: [(await import('${root}/channels/groq.ts')).default({ key: 'k', baseUrl: '${provider.url}', models: ['chat'] })]`;
    const first = await startProcess(members);
    const second = await startProcess(members);
    try {
      const { body } = await post(
        '/v1/responses/compact',
        { model: 'chat', input: 'Rex is a dog.' },
        {
          ...gateway,
          ...first,
        },
      );
      const input = [...body.output, user('x')];
      expect((await post('/v1/responses', { model: 'chat', input }, { ...gateway, ...second })).status).toBe(
        200,
      );
      expect(JSON.stringify(sent().messages)).toContain('The summary.');
      first.signal('SIGKILL');
      await first.exited;
      const third = await startProcess(members);
      onTestFinished(() => third.end());
      expect((await post('/v1/responses', { model: 'chat', input }, { ...gateway, ...third })).status).toBe(
        200,
      );
      // A gateway with a database of its own knows the key of its callers, and cannot read what others sealed.
      expect(refusal(await post('/v1/responses', { model: 'chat', input }))).toEqual(
        refusedAt('input[1].encrypted_content'),
      );
      expect([...first.output, ...second.output].join('')).not.toContain('The summary.');
    } finally {
      await first.end();
      await second.end();
    }
  });
});

describe('context_management', () => {
  const at = (compact_threshold: number): Wire => ({
    context_management: [{ type: 'compaction', compact_threshold }],
  });

  test('leaves a short context alone, without a word', async () => {
    const { status, loss, body } = await post('/v1/responses', {
      model: 'chat',
      input: history,
      ...at(50_000),
    });
    expect([status, loss]).toEqual([200, null]);
    expect(body.output.map(({ type }) => type)).toEqual(['message']);
    expect(provider.requests).toHaveLength(1);
    expect(sent().context_management).toBeUndefined();
  });

  test('compacts one that has grown: the answer’s first item, and its cost is in the usage', async () => {
    const { body } = await post('/v1/responses', { model: 'chat', input: history, ...at(200) });
    expect(body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(body.output[0]?.id).toMatch(/^cmp_/);
    expect(text(body)).toBe('The answer.');
    expect(body.usage).toMatchObject(usageOf(200, 20));
    expect(provider.requests).toHaveLength(2);
    expect(JSON.stringify(sent(0).messages)).toContain('Rex');
    expect(JSON.stringify(sent().messages)).toContain('The summary.');
    expect(sent().messages.at(-1)).toMatchObject({ role: 'user', content: 'What is 2 + 2?' });
    expect(JSON.stringify(sent().messages)).not.toContain('Rex');
  });

  test('takes the threshold from the model’s limit when the client names none', async () => {
    const { body } = await post('/v1/responses', {
      model: 'small',
      input: history,
      context_management: 'auto',
    });
    expect(body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    const short = await post('/v1/responses', { model: 'small', input: 'Hi', context_management: 'auto' });
    expect(short.body.output.map(({ type }) => type)).toEqual(['message']);
  });

  test('streams: the item is there before the first word', async () => {
    const events = await stream('/v1/responses', { model: 'chat', input: history, ...at(200) });
    const types = events.map(({ type }) => String(type));
    expect(types.indexOf('response.output_item.done')).toBeLessThan(
      types.indexOf('response.output_text.delta'),
    );
    const { output, usage } = last(events);
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(usage).toMatchObject(usageOf(200, 20));
    expect(sent(0).stream).not.toBe(true);
    expect(sent().stream).toBe(true);
  });

  test('the item sent back stands for all in front of it, whether the client still has that or not', async () => {
    const { body } = await post('/v1/responses', { model: 'chat', input: history, ...at(200) });
    says = ['Six.'];
    for (const input of [
      [...history, ...body.output, user('And 3 + 3?')],
      [...body.output, user('And 3 + 3?')],
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const { status } = await post('/v1/responses', { model: 'chat', input });
      expect(status).toBe(200);
      const sentText = JSON.stringify(sent().messages);
      expect(sentText).not.toContain('Rex');
      expect(sentText).toContain('The summary.');
      expect(sentText.match(/What is 2 \+ 2\?/g)).toHaveLength(1);
      expect(
        sent()
          .messages.map(({ content }) => content)
          .slice(-3),
      ).toEqual(['What is 2 + 2?', 'The answer.', 'And 3 + 3?']);
    }
  });

  test('a second compaction builds on the first', async () => {
    const { body } = await post('/v1/responses', { model: 'chat', input: history, ...at(200) });
    says = ['The second summary.', 'Done.'];
    const grown = [...history, ...body.output, user(long), assistant('Ok.'), user('Now?')];
    const next = await post('/v1/responses', { model: 'chat', input: grown, ...at(200) });
    expect(next.body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(JSON.stringify(sent(-2).messages)).toContain('The summary.');
    expect(JSON.stringify(sent().messages)).not.toContain('The summary.');
    says = ['Fine.'];
    await post('/v1/responses', { model: 'chat', input: [...grown, ...next.body.output, user('And?')] });
    const sentText = JSON.stringify(sent().messages);
    expect(sentText).toContain('The second summary.');
    expect(sentText).not.toContain('The summary.');
    expect(sentText).toContain('Now?');
  });

  test('an agent’s long run since the user’s last word is compacted too, calls and outputs whole', async () => {
    const rounds = Array.from({ length: 8 }, (_, index) => [
      { type: 'function_call', call_id: `c${index}`, name: 'look', arguments: `{"n":${index}}` },
      { type: 'function_call_output', call_id: `c${index}`, output: `${index} ${long}` },
    ]).flat();
    const { status, body } = await post('/v1/responses', {
      model: 'chat',
      input: [user('Fix the bug.'), ...rounds],
      tools: [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }],
      ...at(2000),
    });
    expect(status).toBe(200);
    expect(body.output[0]?.type).toBe('compaction');
    expect(sent(0).tools).toBeUndefined();
    const { messages, tools } = sent() as ReturnType<typeof sent> & { tools?: unknown[] };
    expect(tools).toHaveLength(1);
    expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
      'Fix the bug.',
    ]);
    const calls = messages.flatMap(
      (message) => (message as { tool_calls?: { id: string }[] }).tool_calls ?? [],
    );
    const results = messages.filter(({ role }) => role === 'tool');
    expect(calls.length).toBe(results.length);
    expect(calls.length).toBeGreaterThan(0);
    expect(calls.length).toBeLessThan(8);
    expect(calls.at(-1)?.id).toBe('c7');
  });

  test('edits of the messages family: one compacts, in the client’s words; the others are reported', async () => {
    const { loss, body } = await post('/v1/responses', {
      model: 'chat',
      input: history,
      context_management: {
        edits: [
          { type: 'clear_tool_uses_20250919' },
          {
            type: 'compact_20260112',
            trigger: { type: 'input_tokens', value: 200 },
            instructions: 'Only the names.',
          },
        ],
      },
    });
    expect(body.output[0]?.type).toBe('compaction');
    expect(loss).toContain('context_management.edits[0]');
    expect(sent(0).messages.at(-1)?.content).toBe('Only the names.');
  });

  test('a pause ends the reply behind the compaction', async () => {
    const { body } = await post('/v1/responses', {
      model: 'chat',
      input: history,
      context_management: {
        edits: [
          {
            type: 'compact_20260112',
            trigger: { type: 'input_tokens', value: 200 },
            pause_after_compaction: true,
          },
        ],
      },
    });
    expect(body.output.map(({ type }) => type)).toEqual(['compaction']);
    expect(body.status).toBe('completed');
    expect(provider.requests).toHaveLength(1);
    says = ['Four.'];
    await post('/v1/responses', { model: 'chat', input: body.output });
    expect(sent().messages.at(-1)).toMatchObject({ role: 'user', content: 'What is 2 + 2?' });
  });

  test('is understood by the official client’s stream', async () => {
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` });
    const reply = client.responses.stream({
      model: 'chat',
      store: false,
      input: history as OpenAI.Responses.ResponseInputItem[],
      context_management: [{ type: 'compaction', compact_threshold: 200 }],
    });
    const kinds: string[] = [];
    reply.on('event', ({ type }) => kinds.push(type));
    const { output, output_text: outputText } = await reply.finalResponse();
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(outputText).toBe('The answer.');
    expect(kinds).toContain('response.compaction.compacting');
  });

  test('what cannot be done is refused where the client wants to know', async () => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${gateway.key}`,
        'x-sluice-strict': 'true',
      },
      body: JSON.stringify({
        model: 'chat',
        input: 'x',
        context_management: { edits: [{ type: 'clear_thinking_20251015' }] },
      }),
    });
    expect([response.status, ((await response.json()) as Answer).error?.param]).toEqual([
      400,
      'context_management.edits[0]',
    ]);
  });

  test('nonsense is refused by name', async () => {
    const { status, body } = await post('/v1/responses', {
      model: 'chat',
      input: 'x',
      context_management: [{ type: 'sometimes' }],
    });
    expect([status, body.error?.param]).toEqual([400, expect.stringContaining('context_management')]);
  });

  test('with the plugin off, the wish is a reported loss', async () => {
    const without = await startGateway({
      plugins: [compactionPlugin.off()],
      channels: [groq({ key: 'k', baseUrl: provider.url, models: ['chat'] })],
    });
    onTestFinished(() => without.close());
    const { status, loss } = await post('/v1/responses', { model: 'chat', input: 'x', ...at(5) }, without);
    expect([status, loss]).toEqual([200, expect.stringContaining('context_management')]);
  });
});

describe('a compaction_trigger', () => {
  test('is answered with the compaction alone', async () => {
    const input = [...history, { type: 'compaction_trigger' }];
    const { status, body } = await post('/v1/responses', { model: 'chat', input });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'response', status: 'completed', usage: usageOf(100, 10) });
    expect(body.output.map(({ type }) => type)).toEqual(['compaction']);
    expect(provider.requests).toHaveLength(1);
    says = ['Four.'];
    await post('/v1/responses', { model: 'chat', input: [...body.output, user('So?')] });
    expect(JSON.stringify(sent().messages)).toContain('The summary.');
  });

  test('streams its one item', async () => {
    const events = await stream('/v1/responses', {
      model: 'chat',
      input: [...history, { type: 'compaction_trigger' }],
    });
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.compaction.compacting',
      'response.output_item.done',
      'response.completed',
    ]);
  });

  test('messages that the client keeps in front of its compaction stay there', async () => {
    const { body } = await post('/v1/responses', {
      model: 'chat',
      input: [...history, { type: 'compaction_trigger' }],
    });
    says = ['Four.'];
    await post('/v1/responses', { model: 'chat', input: [user('My rules.'), ...body.output, user('So?')] });
    expect(sent().messages[0]).toMatchObject({ role: 'user', content: 'My rules.' });
  });

  test('with nothing in front is refused', async () => {
    const { status, body } = await post('/v1/responses', {
      model: 'chat',
      input: [{ type: 'compaction_trigger' }],
    });
    expect([status, body.error?.param]).toEqual([400, 'input']);
  });
});

describe('a provider that compacts by itself', () => {
  test('gets the request as it came, and its object goes back as it is', async () => {
    const { status, body } = await post('/v1/responses/compact', { model: 'native', input: history });
    expect(status).toBe(200);
    expect(body.output).toEqual([{ id: 'cmp_native', type: 'compaction', encrypted_content: 'gAAAA-own' }]);
    expect(compacting.requests.map(({ url }) => url)).toEqual(['/responses/compact']);
    expect(sent(-1, compacting).input).toEqual(history);
  });

  test('is told context_management in the official form, whatever the client wrote', async () => {
    for (const management of [
      { compaction: { threshold: 99 } },
      [{ type: 'compaction', compact_threshold: 99 }],
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const { loss } = await post('/v1/responses', {
        model: 'native',
        input: history,
        context_management: management,
      });
      expect(loss).toBeNull();
      expect(sent(-1, compacting).context_management).toEqual([
        { type: 'compaction', compact_threshold: 99 },
      ]);
    }
    await post('/v1/responses', { model: 'native', input: history, context_management: 'none' });
    expect(sent(-1, compacting).context_management).toBeUndefined();
    expect(compacting.requests).toHaveLength(3);
  });

  test('what it cannot be told is reported', async () => {
    const { loss } = await post('/v1/responses', {
      model: 'native',
      input: history,
      context_management: { edits: [{ type: 'clear_thinking_20251015' }] },
    });
    expect(loss).toContain('context_management.edits[0]');
  });

  test('gets a trigger as it is', async () => {
    const input = [...history, { type: 'compaction_trigger' }];
    await post('/v1/responses', { model: 'native', input });
    expect(sent(-1, compacting).input).toEqual(input);
  });

  test('is asked for a summary where an answer is wanted at once', async () => {
    const { body } = await post('/v1/responses/compact', { model: 'native', input: history, generate: true });
    expect(compacting.requests.map(({ url }) => url)).toEqual(['/responses', '/responses']);
    expect(body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
    expect(body.usage).toMatchObject(usageOf(40, 10));
  });
});

describe('when something fails', () => {
  test('a channel that fails behind the summary is followed by another, which needs no second one', async () => {
    says = ['The summary.', 503, 'The answer.'];
    const { status, body } = await post('/v1/responses', {
      model: 'twice',
      input: history,
      context_management: [{ type: 'compaction', compact_threshold: 200 }],
    });
    expect(status).toBe(200);
    expect(text(body)).toBe('The answer.');
    expect(provider.requests).toHaveLength(3);
    expect(body.usage).toMatchObject(usageOf(200, 20));
  });

  test('a client that leaves during the summary takes the provider’s request along', async () => {
    says = ['(never)'];
    const leaving = new AbortController();
    const reply = fetch(`${gateway.url}/v1/responses/compact`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: 'chat', input: history }),
      signal: leaving.signal,
    });
    reply.catch(() => {});
    await expect.poll(() => provider.requests.length).toBe(1);
    leaving.abort();
    await expect(reply).rejects.toThrow(/abort/i);
    const closed = provider.requests[0]?.closed.then(() => 'closed');
    expect(await Promise.race([closed, setTimeout(3_000, 'open')])).toBe('closed');
  });
});

test('an agent on every format goes on over a compaction in the middle of its work', async () => {
  const tool = { type: 'function', name: 'get_weather', parameters: { type: 'object' }, strict: false };
  for (const model of ['demo-chat', 'demo-messages', 'demo-generate']) {
    const fields = {
      model,
      tools: [tool],
      context_management: [{ type: 'compaction', compact_threshold: 300 }],
    };
    const input = [user(long), assistant('Yes?'), user('call get_weather')];
    // oxlint-disable-next-line no-await-in-loop
    const events = await stream('/v1/responses', { ...fields, input });
    const { output } = last(events);
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'function_call']);
    const result = { type: 'function_call_output', call_id: output[1]?.call_id, output: 'sunny' };
    // oxlint-disable-next-line no-await-in-loop
    const next = last(await stream('/v1/responses', { ...fields, input: [...input, ...output, result] }));
    expect(next.output.map(({ type }) => type)).toEqual(['message']);
    expect(text(next)).toBe('get_weather returned: sunny');
  }
});

test('turns that the gateway keeps are compacted with all the others', async () => {
  const first = await post('/v1/responses', {
    model: 'chat',
    store: true,
    input: `My dog is called Rex. ${long}`,
  });
  const turn = async (previous: Replied, input: string): Promise<Replied> =>
    post('/v1/responses', {
      model: 'chat',
      store: true,
      previous_response_id: previous.body.id,
      input,
      context_management: [{ type: 'compaction', compact_threshold: 300 }],
    });
  says = ['The summary.', 'Four.'];
  const second = await turn(first, 'What is 2 + 2?');
  expect(second.body.output.map(({ type }) => type)).toEqual(['compaction', 'message']);
  says = ['Six.'];
  const third = await turn(second, 'And 3 + 3?');
  expect(third.body.output.map(({ type }) => type)).toEqual(['message']);
  expect(
    sent()
      .messages.slice(1)
      .map(({ content }) => content),
  ).toEqual(['What is 2 + 2?', 'Four.', 'And 3 + 3?']);
  expect(JSON.stringify(sent().messages)).not.toContain('Rex');
});

test('a turn that was only compacted can be gone on from by its id', async () => {
  const first = await post('/v1/responses', { model: 'chat', store: true, input: 'My dog is called Rex.' });
  says = ['The summary.', 'Fine.'];
  const second = await post('/v1/responses', {
    model: 'chat',
    store: true,
    previous_response_id: first.body.id,
    input: [{ type: 'compaction_trigger' }],
  });
  expect(second.body.output.map(({ type }) => type)).toEqual(['compaction']);
  const third = await post('/v1/responses', {
    model: 'chat',
    store: true,
    previous_response_id: second.body.id,
    input: 'How is he?',
  });
  expect([third.status, third.body.error]).toEqual([200, null]);
  expect(JSON.stringify(sent().messages)).toContain('The summary.');
  expect(JSON.stringify(sent().messages)).not.toContain('Rex');
});

test('a compaction by an id goes over all turns behind that id', async () => {
  const first = await post('/v1/responses', { model: 'chat', store: true, input: 'My dog is called Rex.' });
  const { status, body } = await post('/v1/responses/compact', {
    model: 'chat',
    previous_response_id: first.body.id,
    input: 'He barks.',
  });
  expect(status).toBe(200);
  expect(body.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction']);
  expect(JSON.stringify(sent().messages)).toContain('Rex');
});

test('an item that does not open is named by its place in what the client wrote', async () => {
  const first = await post('/v1/responses', { model: 'chat', store: true, input: 'My dog is called Rex.' });
  const { status, body } = await post('/v1/responses', {
    model: 'chat',
    previous_response_id: first.body.id,
    input: [user('x'), { type: 'compaction', encrypted_content: 'slc1.AAAA' }],
  });
  expect([status, body.error?.param]).toEqual([400, 'input[1].encrypted_content']);
});
