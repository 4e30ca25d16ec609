import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const password = 'correct horse battery';
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    adminPassword: password,
    channels: [demo({ models: ['demo'] })],
    prices: { '*': { input: 1, output: 1 } },
  });
});
afterAll(() => gateway.close());

const long = 'w'.repeat(400_000);

/** The most that a client is told of its own words, and that is written of one call, in characters. */
const maxResponseLength = 10_000;
const mostWritten = 30_000;

const tool = { name: 'look', description: 'Looks.' };
const message = { role: 'user', content: 'hello' };
const requests: Readonly<Record<string, JsonObject>> = {
  '/v1/chat/completions': {
    model: 'demo',
    messages: [
      { role: 'user', name: 'me', content: [{ type: 'text', text: 'hello' }] },
      {
        role: 'assistant',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'seen' },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: 'low' } }],
      },
    ],
    tools: [{ type: 'function', function: tool }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    reasoning_effort: 'low',
    response_format: { type: 'text' },
    service_tier: 'auto',
    user: 'me',
    metadata: { a: 'b' },
    stop: ['x'],
    modalities: ['text'],
  },
  '/v1/messages': {
    model: 'demo',
    max_tokens: 10,
    system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral', ttl: '5m' } }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hello' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'seen' }] },
      { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] },
    ],
    tools: [{ ...tool, input_schema: { type: 'object' } }],
    tool_choice: { type: 'tool', name: 'look' },
    thinking: { type: 'disabled' },
    metadata: { user_id: 'me' },
    service_tier: 'auto',
    stop_sequences: ['x'],
  },
  '/v1/responses': {
    model: 'demo',
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] },
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: 'seen' },
      { type: 'item_reference', id: 'msg_1' },
    ],
    previous_response_id: 'resp_none',
    tools: [{ type: 'function', ...tool, parameters: {} }],
    tool_choice: { type: 'function', name: 'look' },
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low' },
    text: { format: { type: 'text' } },
    truncation: 'auto',
    metadata: { a: 'b' },
  },
  '/v1/responses?conversation': { model: 'demo', input: 'hello', conversation: 'conv_none' },
  '/v1beta/models/demo:generateContent': {
    contents: [
      { role: 'user', parts: [{ text: 'hello' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: {} } }] },
    ],
    tools: [{ functionDeclarations: [tool] }],
    toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['look'] } },
    generationConfig: { responseMimeType: 'text/plain', responseModalities: ['TEXT'] },
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  },
  '/v1/completions': { model: 'demo', prompt: 'hello', user: 'me', suffix: 'x' },
  '/v1/embeddings': { model: 'demo', input: 'hello', encoding_format: 'float', user: 'me' },
  '/v1/rerank': { model: 'demo', query: 'hello', documents: ['a', 'b'] },
  '/v1/moderations': { model: 'demo', input: [{ type: 'text', text: 'hello' }] },
  '/v1/images/generations': {
    model: 'demo',
    prompt: 'a cat',
    size: '1024x1024',
    quality: 'high',
    response_format: 'url',
    background: 'auto',
    style: 'vivid',
  },
  '/v1/audio/speech': { model: 'demo', input: 'hello', voice: 'alloy', response_format: 'mp3' },
  '/v1/videos': { model: 'demo', prompt: 'a cat', size: '1280x720', seconds: '4' },
  '/v1/conversations': { items: [{ type: 'message', ...message }], metadata: { a: 'b' } },
};

/** The same request with one text after the other made long, and one name after the other. */
function* lengthened(value: JsonValue, at = ''): Generator<readonly [path: string, value: JsonValue]> {
  if (typeof value === 'string') yield [at, long];
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      for (const [path, changed] of lengthened(item, `${at}[${index}]`))
        yield [path, value.with(index, changed)];
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value))
      for (const [path, changed] of lengthened(member as JsonValue, `${at}.${name}`))
        yield [path, { ...(value as JsonObject), [name]: changed }];
    yield [`${at} (a name)`, { ...(value as JsonObject), [long]: 'x' }];
  }
}

async function send(path: string, body: JsonValue, type = 'application/json'): Promise<Response> {
  return fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'anthropic-version': '2023-06-01',
      'content-type': type,
    },
    body: JSON.stringify(body),
  });
}

/** Returns responses and log lines of the gateway that are too long. */
async function excess(where: string, reply: Response): Promise<string[]> {
  const text = await reply.text();
  const found: string[] = [];
  if (reply.status >= 400 && text.length > maxResponseLength)
    found.push(`${where}: ${reply.status} says ${text.length}: ${text.slice(0, 150)}`);
  const headers = JSON.stringify([...reply.headers]);
  if (headers.length > maxResponseLength)
    found.push(`${where}: its headers have ${headers.length}: ${headers.slice(0, 300)}`);
  for (const line of gateway.lines) {
    const written = JSON.stringify(line);
    if (written.length > mostWritten)
      found.push(`${where}: a line has ${written.length}: ${written.slice(0, 300)}`);
  }
  await gateway.forgetLines();
  return found;
}

describe('what a client has sent is repeated in part, whatever it is', () => {
  test.each(Object.keys(requests))('%s', async (path) => {
    const found: string[] = [];
    for (const [location, body] of lengthened(requests[path] ?? {}))
      // oxlint-disable-next-line no-await-in-loop -- each has lines of its own
      found.push(...(await excess(`${path} ${location}`, await send(path.replace(/\?.*/, ''), body))));
    expect(found).toEqual([]);
  });

  test('in paths, queries and headers', async () => {
    // As much as a head may hold.
    const much = long.slice(0, 12_000);
    const found: string[] = [];
    const headers = { authorization: `Bearer ${gateway.key}` };
    for (const path of [
      `/v1/models/${much}`,
      `/v1beta/models/${much}`,
      `/v1/responses/${much}`,
      `/v1/conversations/${much}`,
      `/v1/videos/${much}`,
      `/v1/responses/resp_1?starting_after=${much}&stream=true`,
      `/v1/responses/resp_1/input_items?after=${much}`,
      `/${much}`,
    ])
      found.push(...(await excess(path.slice(0, 40), await fetch(`${gateway.url}${path}`, { headers }))));
    for (const path of [`/v1beta/models/${much}:generateContent`, `/v1beta/models/demo:${much}`])
      found.push(
        ...(await excess(path.slice(0, 40), await send(path, { contents: [{ parts: [{ text: 'x' }] }] }))),
      );
    found.push(...(await excess('content-type', await send('/v1/chat/completions', {}, `${much}/json`))));
    for (const name of [
      'x-api-key',
      'anthropic-version',
      'x-request-id',
      'idempotency-key',
      'anthropic-beta',
    ])
      found.push(
        ...(await excess(
          name,
          await fetch(`${gateway.url}/v1/messages`, {
            method: 'POST',
            headers: { ...headers, 'content-type': 'application/json', [name]: much },
            body: JSON.stringify({ model: 'demo', max_tokens: 5, messages: [message] }),
          }),
        )),
      );
    expect(found).toEqual([]);
  });

  test('in records, in the audit and in metrics', async () => {
    await (await send('/v1/chat/completions', { model: long, messages: [message] })).text();
    await (
      await send('/v1/chat/completions', { model: 'demo', messages: [message], user: long, [long]: 1 })
    ).text();
    const login = await fetch(`${gateway.url}/api/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ password }),
    });
    const { csrfToken } = (await login.json()) as { csrfToken: string };
    const admin = {
      cookie: login.headers.get('set-cookie')?.split(';')[0] ?? '',
      'x-csrf-token': csrfToken,
      'content-type': 'application/json',
    };
    const found: string[] = [];
    for (const body of [
      { name: long },
      { name: 'x', note: long },
      { name: 'x', models: [long] },
      { [long]: 1 },
    ]) {
      const made = await fetch(`${gateway.url}/api/admin/keys`, {
        method: 'POST',
        headers: admin,
        body: JSON.stringify(body),
      });
      found.push(...(await excess('keys', made)));
    }
    const shown = async (path: string): Promise<string> =>
      (await fetch(`${gateway.url}/api/admin/${path}`, { headers: admin })).text();
    await expect
      .poll(async () => (JSON.parse(await shown('usage?limit=50')) as { records: object[] }).records.length)
      .toBeGreaterThan(1);
    for (const path of ['usage?limit=50', 'audit', 'keys', 'overview?range=24h']) {
      const text = await shown(path);
      if (text.length > 50 * maxResponseLength) found.push(`${path}: ${text.length}`);
    }
    const { database } = gateway.stores;
    if (database.kind !== 'sqlite') throw new Error('This test looks into SQLite.');
    for (const table of ['usage_records', 'usage_kinds', 'usage_details', 'keyv'])
      for (const row of database.connection.prepare(`SELECT * FROM ${table}`).all())
        if (JSON.stringify(row).length > mostWritten)
          found.push(`${table}: ${JSON.stringify(row).length}: ${JSON.stringify(row).slice(0, 300)}`);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    for (const line of metrics.split('\n'))
      if (line.length > 500) found.push(`metrics: ${line.slice(0, 100)}`);
    expect(found).toEqual([]);
  });
});
