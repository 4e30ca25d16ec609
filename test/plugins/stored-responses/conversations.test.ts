import { join } from 'node:path';
import * as fc from 'fast-check';
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../core/sdk/index.ts';
import { withIds } from '../../../plugins/stored-responses/items.ts';
import { clientOf, startStored, type Answer, type Client } from './_client.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let own: Client;
let other: Client;
let started: Awaited<ReturnType<typeof startStored>>;

beforeEach(async () => {
  started = await startStored();
  own = await started.client();
  other = await started.client();
});

const message = (role: string, content: unknown) => ({ role, content });

async function begin(body: unknown = {}): Promise<string> {
  const { body: made } = await own.post('/v1/conversations', body);
  return made.id;
}

describe('a conversation', () => {
  test('is made with items and metadata, read, changed and deleted', async () => {
    const made = await own.post('/v1/conversations', {
      items: [message('user', 'Hello.')],
      metadata: { topic: 'greetings' },
    });
    const { id } = made.body;
    expect(made.status).toBe(200);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^conv_[0-9a-f]{48}$/) as string,
      object: 'conversation',
      created_at: expect.any(Number) as number,
      metadata: { topic: 'greetings' },
    });
    expect(Math.abs(made.body.created_at - Date.now() / 1000)).toBeLessThan(10);
    expect((await own.get(`/v1/conversations/${id}`)).body).toEqual(made.body);

    const changed = await own.post(`/v1/conversations/${id}`, { metadata: { topic: 'farewells' } });
    expect(changed.body).toEqual({ ...made.body, metadata: { topic: 'farewells' } });
    expect((await own.get(`/v1/conversations/${id}`)).body).toEqual(changed.body);
    expect((await own.post(`/v1/conversations/${id}`, { metadata: null })).body.metadata).toEqual({});

    const deleted = await own.delete(`/v1/conversations/${id}`);
    expect(deleted.body).toEqual({ id, object: 'conversation.deleted', deleted: true });
    expect((await own.get(`/v1/conversations/${id}`)).status).toBe(404);
    expect((await own.delete(`/v1/conversations/${id}`)).status).toBe(404);
    expect((await own.get(`/v1/conversations/${id}/items`)).status).toBe(404);
  });

  test('may be made of nothing, without even a body', async () => {
    const { status, body } = await own.post('/v1/conversations');
    expect(status).toBe(200);
    expect(body.metadata).toEqual({});
    expect((await own.get(`/v1/conversations/${body.id}/items`)).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  test('shows its items as the official API does: with ids, types, states and parts', async () => {
    const id = await begin();
    const { status, body } = await own.post(`/v1/conversations/${id}/items`, {
      items: [
        message('user', 'What is the weather?'),
        { type: 'message', ...message('assistant', 'Let me see.') },
        { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'sunny' },
        { type: 'reasoning', summary: [], encrypted_content: 'xyz' },
        {
          id: 'msg_own',
          type: 'message',
          status: 'incomplete',
          ...message('developer', [{ type: 'input_text', text: 'x' }]),
        },
      ],
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'list', has_more: false });
    expect(body.first_id).toBe(body.data[0]?.id);
    expect(body.last_id).toBe('msg_own');
    const id48 = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-f]{48}$`)) as string;
    expect(body.data).toEqual([
      {
        id: id48('msg'),
        type: 'message',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_text', text: 'What is the weather?' }],
      },
      {
        id: id48('msg'),
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Let me see.', annotations: [], logprobs: [] }],
      },
      {
        id: id48('fc'),
        type: 'function_call',
        status: 'completed',
        call_id: 'call_1',
        name: 'get_weather',
        arguments: '{}',
      },
      {
        id: id48('fco'),
        type: 'function_call_output',
        status: 'completed',
        call_id: 'call_1',
        output: 'sunny',
      },
      { id: id48('rs'), type: 'reasoning', summary: [], encrypted_content: 'xyz' },
      {
        id: 'msg_own',
        type: 'message',
        status: 'incomplete',
        role: 'developer',
        content: [{ type: 'input_text', text: 'x' }],
      },
    ]);
    const list = await own.get(`/v1/conversations/${id}/items?order=asc`);
    expect(list.body.data).toEqual(body.data);
  });

  test('is listed newest first, twenty at a time, unless asked otherwise', async () => {
    const id = await begin({ items: Array.from({ length: 20 }, (_, n) => message('user', `a${n}`)) });
    await own.post(`/v1/conversations/${id}/items`, {
      items: Array.from({ length: 5 }, (_, n) => message('user', `b${n}`)),
    });
    const texts = ({ body }: Answer) => body.data.map(({ content }) => content[0]?.text);
    const path = `/v1/conversations/${id}/items`;
    const first = await own.get(path);
    expect(first.body.data).toHaveLength(20);
    expect(first.body.has_more).toBe(true);
    expect(texts(first).slice(0, 6)).toEqual(['b4', 'b3', 'b2', 'b1', 'b0', 'a19']);
    const rest = await own.get(`${path}?after=${first.body.last_id}`);
    expect(texts(rest)).toEqual(['a4', 'a3', 'a2', 'a1', 'a0']);
    expect(rest.body.has_more).toBe(false);
    expect(texts(await own.get(`${path}?order=asc&limit=2`))).toEqual(['a0', 'a1']);
    expect((await own.get(`${path}?limit=100`)).body.data).toHaveLength(25);
  });

  test('gives and deletes one item', async () => {
    const id = await begin({ items: [message('user', 'one'), message('user', 'two')] });
    const path = `/v1/conversations/${id}`;
    const [two, one = { id: '' }] = (await own.get(`${path}/items`)).body.data;
    expect((await own.get(`${path}/items/${one.id}`)).body).toEqual(one);
    expect((await own.delete(`${path}/items/${one.id}`)).body).toEqual((await own.get(path)).body);
    expect((await own.get(`${path}/items/${one.id}`)).status).toBe(404);
    expect((await own.delete(`${path}/items/${one.id}`)).status).toBe(404);
    expect((await own.get(`${path}/items`)).body.data).toEqual([two]);
  });

  test('takes over what an item only refers to', async () => {
    const from = await begin({ items: [message('user', 'kept')] });
    const [kept] = (await own.get(`/v1/conversations/${from}/items`)).body.data;
    const id = await begin({ items: [{ type: 'item_reference', id: kept?.id }] });
    expect((await own.get(`/v1/conversations/${id}/items`)).body.data).toEqual([kept]);
    const again = await own.post(`/v1/conversations/${id}/items`, { items: [{ id: kept?.id }] });
    expect(again.body.data[0]?.content).toEqual(kept?.content);
    expect(again.body.data[0]?.id).not.toBe(kept?.id);
  });

  test('is still there after a restart', async () => {
    const folder = temporaryFolder();
    const config = { database: `sqlite:${join(folder, 'sluice.db')}` };
    const before = await startStored(config);
    const { record, value } = await before.gateway.apiKeys.create({ name: 'stays' });
    const client = clientOf(before.gateway, value, record.id);
    const { id } = (await client.post('/v1/conversations', { items: [message('user', 'Hello.')] })).body;
    const items = await client.get(`/v1/conversations/${id}/items`);
    await before.gateway.close();
    const after = await startStored(config);
    const same = clientOf(after.gateway, value, record.id);
    expect(await same.get(`/v1/conversations/${id}/items`)).toEqual(items);
  });

  test('works with the official client', async () => {
    const key = (await started.gateway.apiKeys.create({ name: 'sdk' })).value;
    const client = new OpenAI({ apiKey: key, baseURL: `${started.gateway.url}/v1`, maxRetries: 0 });
    const { id } = await client.conversations.create({ metadata: { a: 'b' } });
    const items = Array.from({ length: 7 }, (_, n) => ({ role: 'user' as const, content: `n${n}` }));
    const added = await client.conversations.items.create(id, { items });
    expect(added.data).toHaveLength(7);
    const seen = [];
    for await (const item of client.conversations.items.list(id, { limit: 3, order: 'asc' }))
      seen.push(item.id);
    expect(seen).toEqual(added.data.map((item) => item.id));
    const [first = ''] = seen;
    const one = await client.conversations.items.retrieve(String(first), { conversation_id: id });
    expect(one).toEqual(added.data[0]);
    expect((await client.conversations.items.delete(String(first), { conversation_id: id })).id).toBe(id);
    expect((await client.conversations.update(id, { metadata: {} })).metadata).toEqual({});
    expect((await client.conversations.delete(id)).deleted).toBe(true);
    await expect(client.conversations.retrieve(id)).rejects.toMatchObject({ status: 404 });
  });
});

describe('nonsense is refused with the field’s name', () => {
  const long = 'x'.repeat(513);
  const pairs = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v']));
  const many = Array.from({ length: 21 }, () => message('user', 'x'));

  test.each([
    ['metadata', { metadata: 'x' }],
    ['metadata', { metadata: pairs }],
    ['metadata', { metadata: { ['x'.repeat(65)]: 'v' } }],
    ['metadata.a', { metadata: { a: 1 } }],
    ['metadata.a', { metadata: { a: long } }],
    ['items', { items: 'x' }],
    ['items', { items: many }],
    ['items[0]', { items: ['x'] }],
    ['items[1].role', { items: [message('user', 'x'), { content: 'x' }] }],
    ['items[0].role', { items: [message('critic', 'x')] }],
    ['items[0].content', { items: [{ role: 'user' }] }],
    ['items[0].content', { items: [message('user', 7)] }],
    ['items[0].content', { items: [message('user', ['x'])] }],
    ['items[0].type', { items: [{ type: 7 }] }],
    ['items[0].id', { items: [{ ...message('user', 'x'), id: 7 }] }],
    ['items[0].id', { items: [{ type: 'item_reference' }] }],
    ['items[0].id', { items: [{ type: 'item_reference', id: 'msg_unknown' }] }],
  ])('%s in %j', async (param, body) => {
    const { status, body: answer } = await own.post('/v1/conversations', body);
    expect(status).toBe(400);
    expect(answer.error).toMatchObject({ type: 'invalid_request_error', param });
  });

  test('when items are added or metadata is changed', async () => {
    const id = await begin();
    const path = `/v1/conversations/${id}`;
    expect((await own.post(path, {})).body.error.param).toBe('metadata');
    expect((await own.post(`${path}/items`, {})).body.error.param).toBe('items');
    expect((await own.post(`${path}/items`, { items: many })).body.error.param).toBe('items');
    expect(
      (await own.post(`${path}/items`, { items: [message('user', 'x'), message('user', 1)] })).status,
    ).toBe(400);
    expect((await own.get(`${path}/items`)).body.data).toEqual([]);
    const response = await own.fetch(path, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' },
    });
    expect(response.status).toBe(400);
  });

  test.each([
    'limit=0',
    'limit=101',
    'limit=x',
    'limit=1.5',
    'limit=',
    'limit=-3',
    'order=up',
    'after=nothing',
  ])('in a list’s query: %s', async (query) => {
    const id = await begin({ items: [message('user', 'x')] });
    const { status, body } = await own.get(`/v1/conversations/${id}/items?${query}`);
    expect(status).toBe(400);
    expect(body.error.param).toBe(query.split('=')[0]);
  });
});

test.each<[string, Record<string, unknown>, number, string?]>([
  ['sixteen pairs', Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`n${at}`, 'x'])), 200],
  [
    'seventeen pairs',
    Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`n${at}`, 'x'])),
    400,
    'metadata',
  ],
  ['a name of 64 characters', { ['n'.repeat(64)]: 'x' }, 200],
  ['a name of 65 characters', { ['n'.repeat(65)]: 'x' }, 400, 'metadata'],
  ['a value of 512 characters', { name: 'x'.repeat(512) }, 200],
  ['a value of 513 characters', { name: 'x'.repeat(513) }, 400, 'metadata.name'],
  ['a value that is no text', { name: 1 }, 400, 'metadata.name'],
])('metadata with %s', async (_what, metadata, expected, param) => {
  const { status, body } = await own.post('/v1/conversations', { metadata });
  expect(status).toBe(expected);
  if (param === undefined) expect(body.metadata).toEqual(metadata);
  else expect(body.error.param).toBe(param);
});

test('items that were normalised once stay as they are', () => {
  const item = fc.record(
    {
      type: fc.constantFrom('message', 'function_call', 'reasoning', 'mcp_list_tools', 'not_invented_yet'),
      id: fc.option(fc.string()),
      status: fc.option(fc.constantFrom('completed', 'incomplete')),
      role: fc.constantFrom('user', 'assistant', 'developer'),
      content: fc.oneof(fc.string(), fc.array(fc.record({ type: fc.string(), text: fc.string() }))),
      rest: fc.jsonValue(),
    },
    { requiredKeys: ['role', 'content'] },
  );
  fc.assert(
    fc.property(fc.array(item), (items) => {
      const once = withIds(items as JsonObject[]);
      expect(withIds(once)).toEqual(once);
      expect(new Set(once.map(({ id }) => id)).has('')).toBe(false);
      expect(once.map(({ rest }) => rest)).toEqual(items.map(({ rest }) => rest));
    }),
  );
});

// The ids that api.openai.com gives to the items of its Responses; it refuses an item whose id begins otherwise.
test.each([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['web_search_call', 'ws'],
  ['file_search_call', 'fs'],
  ['code_interpreter_call', 'ci'],
  ['image_generation_call', 'ig'],
  ['computer_call', 'cu'],
  ['custom_tool_call', 'ctc'],
  ['local_shell_call', 'lsh'],
  ['shell_call', 'sh'],
  ['apply_patch_call', 'apc'],
  ['mcp_list_tools', 'mcpl'],
  ['mcp_call', 'mcp'],
  ['mcp_approval_request', 'mcpr'],
])('an item of the type %s without an id gets one that begins with %s_', (type, prefix) => {
  const [item] = withIds([{ type }]);
  expect(item?.['id']).toMatch(new RegExp(`^${prefix}_[0-9a-f]{48}$`));
});

test('another key’s conversation looks exactly like one that never was', async () => {
  const id = await begin({ items: [message('user', 'secret')] });
  const item = (await own.get(`/v1/conversations/${id}/items`)).body.first_id;
  const unknown = id.replace(/.{4}$/, (end) => (end === '0000' ? '1111' : '0000'));
  const requests: ((path: string) => Promise<{ status: number; body: unknown }>)[] = [
    (path) => other.get(path),
    (path) => other.post(path, { metadata: {} }),
    (path) => other.delete(path),
    (path) => other.get(`${path}/items`),
    (path) => other.get(`${path}/items?after=${item}`),
    (path) => other.post(`${path}/items`, { items: [message('user', 'mine')] }),
    (path) => other.post(`${path}/items`, { items: [] }),
    (path) => other.get(`${path}/items/${item}`),
    (path) => other.delete(`${path}/items/${item}`),
  ];
  for (const request of requests) {
    const foreign = await request(`/v1/conversations/${id}`);
    const never = await request(`/v1/conversations/${unknown}`);
    expect(foreign.status).toBe(404);
    expect(JSON.stringify(foreign).replaceAll(id, 'ID')).toBe(
      JSON.stringify(never).replaceAll(unknown, 'ID'),
    );
  }
  // Nor can its items be referred to.
  const referring = (to: string) =>
    other.post('/v1/conversations', { items: [{ type: 'item_reference', id: to }] });
  const [foreign, never] = [await referring(item), await referring('msg_never')];
  expect(foreign.status).toBe(never.status);
  expect(JSON.stringify(foreign).replaceAll(item, 'msg_never')).toBe(JSON.stringify(never));
  expect((await own.get(`/v1/conversations/${id}/items`)).body.data).toHaveLength(1);
});

test('without a key nothing is told', async () => {
  const id = await begin();
  const response = await fetch(`${started.gateway.url}/v1/conversations/${id}`);
  expect(response.status).toBe(401);
});
