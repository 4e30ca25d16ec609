import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from 'sluice';
import { parseSse } from 'sluice/channel-kit';
import type { ResponseStore, StoredResponse } from '../../../core/state/responses/index.ts';
import { replay } from '../../../plugins/stored-responses/replay.ts';
import { clientOf, startStored, type Client } from './_client.ts';
import { connectionOf } from '../../support/sqlite.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let own: Client;
let other: Client;
let store: ResponseStore;
let started: Awaited<ReturnType<typeof startStored>>;

beforeEach(async () => {
  started = await startStored();
  ({ store } = started);
  own = await started.client();
  other = await started.client();
});

const now = Math.floor(Date.now() / 1000);
const usage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 12,
};
const output = [
  {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Thinking.' }],
    encrypted_content: 'abc',
  },
  {
    id: 'msg_1',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'Hello there. 😀', annotations: [], logprobs: [] }],
  },
  {
    id: 'fc_1',
    type: 'function_call',
    status: 'completed',
    call_id: 'call_1',
    name: 'get_weather',
    arguments: '{"city":"Oslo"}',
  },
];

function responseOf(id: string, changes: JsonObject = {}): JsonObject {
  return {
    id,
    object: 'response',
    created_at: now,
    completed_at: now + 2,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: 'm',
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage,
    user: null,
    metadata: {},
    ...changes,
  };
}

async function keep(
  id: string,
  changes: JsonObject = {},
  record: Partial<StoredResponse> = {},
): Promise<JsonObject> {
  const response = responseOf(id, changes);
  const input = [
    {
      id: `in_${id}`,
      type: 'message',
      status: 'completed',
      role: 'user',
      content: [{ type: 'input_text', text: 'Hi.' }],
    },
  ];
  await store.save({
    id,
    owner: own.owner,
    createdAt: now,
    expiresAt: now + 1000,
    response,
    input,
    ...record,
  });
  return response;
}

const running: JsonObject = {
  status: 'in_progress',
  background: true,
  output: [],
  usage: null,
  completed_at: null,
};
const soon = (): number => Date.now() + 60_000;

interface StreamEvent extends JsonObject {
  readonly type: string;
  readonly sequence_number: number;
}

function eventsIn(text: string): StreamEvent[] {
  const frames = parseSse(text);
  if (text.length > 0) expect(frames.pop()?.data).toBe('[DONE]');
  return frames.map(({ event, data }) => {
    const parsed = JSON.parse(data) as StreamEvent;
    expect(event).toBe(parsed.type);
    return parsed;
  });
}

async function replayed(path: string, client = own): Promise<StreamEvent[]> {
  const response = await client.fetch(path);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  return eventsIn(await response.text());
}

describe('a kept response', () => {
  test('is given as it was', async () => {
    const kept = await keep('resp_1');
    expect(await own.get('/v1/responses/resp_1')).toEqual({ status: 200, body: kept });
  });

  test('is gone when it was deleted', async () => {
    await keep('resp_1');
    expect((await own.delete('/v1/responses/resp_1')).body).toEqual({
      id: 'resp_1',
      object: 'response',
      deleted: true,
    });
    const gone = await own.get('/v1/responses/resp_1');
    expect(gone.status).toBe(404);
    expect(gone.body.error).toMatchObject({
      message: "Response with id 'resp_1' not found.",
      type: 'invalid_request_error',
      param: null,
    });
    expect((await own.delete('/v1/responses/resp_1')).status).toBe(404);
  });

  test('is not found when its time is over', async () => {
    await keep('resp_1', {}, { expiresAt: now - 1 });
    expect((await own.get('/v1/responses/resp_1')).status).toBe(404);
    expect((await own.get('/v1/responses/resp_1/input_items')).status).toBe(404);
  });

  test('is still there after a restart', async () => {
    const folder = temporaryFolder();
    const config = { database: `sqlite:${join(folder, 'sluice.db')}` };
    const before = await startStored(config);
    const { record, value } = await before.gateway.apiKeys.create({ name: 'stays' });
    const kept = responseOf('resp_1');
    await before.store.save({
      id: 'resp_1',
      owner: record.id,
      createdAt: now,
      expiresAt: now + 1000,
      response: kept,
      input: [],
    });
    await before.gateway.close();
    const after = await startStored(config);
    expect((await clientOf(after.gateway, value, record.id).get('/v1/responses/resp_1')).body).toEqual(kept);
  });

  test('whose text is damaged is not found, and the log says so', async () => {
    await keep('resp_1');
    connectionOf(started.gateway.stores).exec(`UPDATE responses SET response = '{'`);
    expect((await own.get('/v1/responses/resp_1')).status).toBe(404);
    expect(JSON.stringify(started.gateway.lines)).toContain('The response resp_1 is damaged in the database');
  });

  test('shows what this turn was asked', async () => {
    const input = Array.from({ length: 25 }, (_, n) => ({ id: `item_${n}`, type: 'message' }));
    await keep('resp_1', {}, { input });
    const path = '/v1/responses/resp_1/input_items';
    const first = await own.get(path);
    expect(first.body).toEqual({
      object: 'list',
      data: input.slice(5).toReversed(),
      first_id: 'item_24',
      last_id: 'item_5',
      has_more: true,
    });
    expect((await own.get(`${path}?after=item_5`)).body.data).toEqual(input.slice(0, 5).toReversed());
    expect((await own.get(`${path}?order=asc&limit=2&after=item_1`)).body.data).toEqual(input.slice(2, 4));
    expect((await own.get(`${path}?order=asc&after=item_24`)).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
    for (const query of ['limit=0', 'limit=101', 'limit=ten', 'order=newest', 'after=item_99']) {
      const { status, body } = await own.get(`${path}?${query}`);
      expect([status, body.error.param]).toEqual([400, query.split('=')[0]]);
    }
  });

  test('works with the official client', async () => {
    const { value, record } = await started.gateway.apiKeys.create({ name: 'sdk' });
    const kept = await keep('resp_1', {}, { owner: record.id });
    const client = new OpenAI({ apiKey: value, baseURL: `${started.gateway.url}/v1`, maxRetries: 0 });
    expect(await client.responses.retrieve('resp_1')).toMatchObject(kept);
    const items = [];
    for await (const item of client.responses.inputItems.list('resp_1', { limit: 1 })) items.push(item.id);
    expect(items).toEqual(['in_resp_1']);
    const stream = client.responses.stream({ response_id: 'resp_1' });
    expect((await stream.finalResponse()).output_text).toBe('Hello there. 😀');
    await client.responses.delete('resp_1');
    await expect(client.responses.retrieve('resp_1')).rejects.toMatchObject({ status: 404 });
  });
});

describe('a kept response as a stream', () => {
  test('is the stream that it was, without the pieces', async () => {
    const kept = await keep('resp_1');
    const events = await replayed('/v1/responses/resp_1?stream=true');
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, n) => n));
    expect(events.slice(0, 2)).toMatchObject([
      {
        type: 'response.created',
        response: { id: 'resp_1', status: 'in_progress', output: [], usage: null },
      },
      { type: 'response.in_progress', response: { id: 'resp_1', status: 'in_progress' } },
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: kept });
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item)).toEqual(output);
    expect(done.map(({ output_index }) => output_index)).toEqual([0, 1, 2]);
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
    expect(deltas.map(({ delta }) => delta).join('')).toBe('Hello there. 😀');
  });

  test('brings every kind of item as it was kept', async () => {
    const text = { type: 'output_text', text: 'a', annotations: [], logprobs: [] };
    const cited = {
      ...text,
      annotations: [
        { type: 'url_citation', start_index: 0, end_index: 1, title: 't', url: 'https://x.test' },
      ],
    };
    const messageFields = { type: 'message', role: 'assistant', status: 'completed' };
    const raw = { type: 'reasoning_text', text: 'hm' };
    const call = { status: 'completed', name: 'f' };
    const kept: JsonObject[] = [
      { id: 'rs_2', type: 'reasoning', summary: [], content: [raw], status: 'completed' },
      {
        id: 'msg_2',
        ...messageFields,
        phase: 'commentary',
        content: [cited, { type: 'refusal', refusal: 'no' }, text],
      },
      { id: 'msg_3', ...messageFields, status: 'incomplete', content: [] },
      { id: 'fc_2', type: 'function_call', ...call, call_id: 'call_1', arguments: '{}', namespace: 'tools' },
      { id: 'ctc_1', type: 'custom_tool_call', ...call, call_id: 'call_2', input: 'free text' },
      {
        id: 'lsh_1',
        type: 'local_shell_call',
        ...call,
        call_id: 'call_3',
        action: { type: 'exec', command: ['ls'], env: {} },
      },
      {
        id: 'ws_1',
        type: 'web_search_call',
        status: 'completed',
        action: { type: 'search', queries: ['x'] },
      },
      { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'AAAA' },
      { id: 'cmp_1', type: 'compaction', encrypted_content: 'sealed' },
      { id: 'x_1', type: 'not_invented_yet', x: 1 },
    ];
    await keep('resp_1', { output: kept });
    const events = await replayed('/v1/responses/resp_1?stream=true');
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item)).toEqual(kept);
  });

  test('goes on after a number, and ends with the whole response whatever the number is', async () => {
    const kept = await keep('resp_1');
    const path = '/v1/responses/resp_1?stream=true';
    const all = await replayed(path);
    expect(await replayed(`${path}&starting_after=3`)).toEqual(all.slice(4));
    expect(await replayed(`${path}&starting_after=0`)).toEqual(all.slice(1));
    expect(await replayed(`${path}&starting_after=5000`)).toEqual([
      { type: 'response.completed', response: kept, sequence_number: 5001 },
    ]);
    const refused = await own.get(`${path}&starting_after=x`);
    expect([refused.status, refused.body.error.param]).toEqual([400, 'starting_after']);
  });

  test.each([
    ['failed', 'response.failed', { error: { code: 'server_error', message: 'It broke.' } }],
    ['incomplete', 'response.incomplete', { incomplete_details: { reason: 'max_output_tokens' } }],
    ['cancelled', 'response.incomplete', {}],
  ])('that is %s ends with %s', async (status, last, changes) => {
    const kept = await keep('resp_1', { status, ...changes });
    const events = await replayed('/v1/responses/resp_1?stream=true');
    expect(events.at(-1)).toMatchObject({ type: last, response: kept });
    expect(events.filter(({ type }) => type === 'response.output_item.done')).toHaveLength(3);
  });

  test('that is still being made is followed to its end', async () => {
    await keep('resp_1', { ...running, status: 'queued' }, { runsUntil: soon() });
    const response = await own.fetch('/v1/responses/resp_1?stream=true');
    let text = '';
    const steps: [seen: string, next: () => Promise<unknown>][] = [
      ['response.queued', () => keep('resp_1', running, { runsUntil: soon() })],
      ['response.in_progress', () => keep('resp_1', { background: true })],
    ];
    let finished: unknown;
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      const [step] = steps;
      if (step === undefined || !text.includes(step[0])) continue;
      steps.shift();
      finished = await step[1]();
    }
    const events = eventsIn(text);
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
    ]);
    expect(events[0]).toMatchObject({ response: { status: 'queued' } });
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: finished });
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, n) => n));
  });

  test('whose run was interrupted meanwhile ends as failed', async () => {
    await keep('resp_1', running, { runsUntil: soon() });
    const response = await own.fetch('/v1/responses/resp_1?stream=true');
    let text = '';
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      if (text === '') await keep('resp_1', running, { runsUntil: Date.now() - 1 });
      text += piece;
    }
    const events = eventsIn(text);
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.failed',
    ]);
    expect(events.at(-1)).toMatchObject({ response: { status: 'failed', error: { code: 'server_error' } } });
  });

  test('that is deleted while it is followed ends with an error', async () => {
    await keep('resp_1', running, { runsUntil: soon() });
    const response = await own.fetch('/v1/responses/resp_1?stream=true');
    await store.remove(own.owner, 'resp_1');
    const events = parseSse(await response.text());
    expect(events.at(-1)?.event).toBe('error');
    expect(events.at(-1)?.data).toContain('was deleted.');
  });

  test('is no longer followed when the client leaves', async () => {
    await keep('resp_1', running, { runsUntil: soon() });
    const first = await store.find(own.owner, 'resp_1');
    const codec = started.gateway.gateway.formats.find(({ name }) => name === 'responses')?.codecs.chat;
    if (first === undefined || codec === undefined) throw new Error('There is nothing to follow.');
    let looks = 0;
    const state = async () => {
      looks += 1;
      return { status: 'in_progress', alive: true };
    };
    const events = replay(first, { codec, startingAfter: -1, state, find: async () => first });
    const following = events.subscribe();
    await sleep(600);
    following.unsubscribe();
    const before = looks;
    expect(before).toBeGreaterThan(0);
    await sleep(600);
    expect(looks).toBe(before);
  });

  test('that is unknown is a 404 with a JSON body', async () => {
    const response = await own.fetch('/v1/responses/resp_1?stream=true');
    expect(response.status).toBe(404);
    expect(((await response.json()) as { error: unknown }).error).toMatchObject({ param: null });
  });
});

describe('cancelling', () => {
  test('ends what runs, and is told twice alike', async () => {
    await keep('resp_1', running, { runsUntil: soon() });
    const first = await own.post('/v1/responses/resp_1/cancel');
    expect(first).toMatchObject({ status: 200, body: { id: 'resp_1', status: 'cancelled' } });
    expect(await own.post('/v1/responses/resp_1/cancel')).toEqual(first);
    expect((await own.get('/v1/responses/resp_1')).body).toEqual(first.body);
  });

  test('changes nothing about what has ended', async () => {
    const kept = await keep('resp_1', { background: true });
    expect(await own.post('/v1/responses/resp_1/cancel')).toEqual({ status: 200, body: kept });
  });

  test('is for background responses alone', async () => {
    await keep('resp_1');
    const { status, body } = await own.post('/v1/responses/resp_1/cancel');
    expect(status).toBe(400);
    expect(body.error.message).toContain('background');
  });
});

describe('a run', () => {
  test('whose process is gone is shown as failed', async () => {
    await keep('resp_1', running, { runsUntil: Date.now() - 1 });
    const { body } = await own.get('/v1/responses/resp_1');
    expect(body).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The response was interrupted before it was complete.' },
    });
    expect((await own.post('/v1/responses/resp_1/cancel')).body.status).toBe('failed');
  });

  test('is shown as it is while its process reports', async () => {
    const kept = await keep('resp_1', running, { runsUntil: soon() });
    expect((await own.get('/v1/responses/resp_1')).body).toEqual(kept);
  });

  test('can be deleted', async () => {
    await keep('resp_1', running, { runsUntil: soon() });
    expect((await own.delete('/v1/responses/resp_1')).status).toBe(200);
    expect((await own.get('/v1/responses/resp_1')).status).toBe(404);
  });
});

test('another key’s response looks exactly like one that never was', async () => {
  const kept = await keep('resp_theirs', { background: true });
  const requests: ((id: string) => Promise<unknown>)[] = [
    (id) => other.get(`/v1/responses/${id}`),
    (id) => other.get(`/v1/responses/${id}?stream=true`),
    (id) => other.delete(`/v1/responses/${id}`),
    (id) => other.post(`/v1/responses/${id}/cancel`),
    (id) => other.get(`/v1/responses/${id}/input_items`),
    (id) => other.get(`/v1/responses/${id}/input_items?after=in_resp_theirs`),
  ];
  for (const request of requests) {
    const foreign = await request('resp_theirs');
    expect(foreign).toMatchObject({ status: 404 });
    const never = JSON.stringify(await request('resp_unknown'));
    expect(JSON.stringify(foreign).replaceAll('resp_theirs', 'resp_unknown')).toBe(never);
  }
  expect((await own.get('/v1/responses/resp_theirs')).body).toEqual(kept);
});

test('strange ids are only unknown', async () => {
  for (const id of ['%00', '..%2f..', '%F0%9F%98%80', "'; DROP TABLE responses; --", 'x'.repeat(4000)]) {
    expect((await own.get(`/v1/responses/${id}`)).status).toBe(404);
  }
  await keep('resp_1');
  expect((await own.get('/v1/responses/resp_1')).status).toBe(200);
});

test('without a key nothing is told', async () => {
  await keep('resp_1');
  for (const path of ['/v1/responses/resp_1', '/v1/responses/resp_1/input_items']) {
    expect((await fetch(started.gateway.url + path)).status).toBe(401);
  }
});
