import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { newDatabases } from '../../flows/_one-database.ts';
import { configWith, key as operatedKey, operate } from '../../reload/gateway.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';
import { oddServer } from '../../support/mcp/odd-server.ts';
import { connectionOf } from '../../support/sqlite.ts';

/* Sessions of clients whose requests reach any worker of any gateway. */

type McpOptions = NonNullable<Parameters<typeof mcp>[0]>;

interface Access {
  readonly url: string;
  readonly key: string;
}

async function upstream(): Promise<HttpMcpServer> {
  const server = await startMcpServer(() => oddServer('red'));
  onTestFinished(() => server.close());
  return server;
}

/** Two gateways with the same servers. The second one knows the key of the first. */
async function twoGateways(database: string, options: McpOptions): Promise<[TestGateway, TestGateway]> {
  const start = () => startGateway({ database, channels: [demo()], plugins: [mcp(options)] });
  const gateways: [TestGateway, TestGateway] = [await start(), await start()];
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()));
  });
  return gateways;
}

/** Sends a request over a connection of its own. */
function sendRequest(
  { url, key }: Access,
  session: string,
  method = 'tools/list',
  params?: object,
): Promise<Response> {
  const isMessage = method !== 'GET' && method !== 'DELETE';
  return fetch(`${url}/mcp`, {
    method: isMessage ? 'POST' : method,
    headers: {
      authorization: `Bearer ${key}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      connection: 'close',
      ...(session === '' ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }),
    },
    ...(isMessage ? { body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }) } : {}),
  });
}

async function status(...args: Parameters<typeof sendRequest>): Promise<number> {
  const response = await sendRequest(...args);
  await response.body?.cancel();
  return response.status;
}

const initialize = (access: Access, session = ''): Promise<Response> =>
  sendRequest(access, session, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });

async function begin(access: Access): Promise<string> {
  const response = await initialize(access);
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

const echo = { name: 'red__echo', arguments: { text: 'hé' } };

const databases = newDatabases();

describe.each(databases)('two gateways on one database: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)('serve the sessions of each other, until they are deleted', async () => {
    const red = await upstream();
    const [one, other] = await twoGateways(await url(), { servers: { red: { url: red.url } } });
    const { key } = one;
    const elsewhere = { url: other.url, key };
    const id = await begin(one);
    const both = await Promise.all([
      sendRequest(elsewhere, id),
      sendRequest(elsewhere, id, 'tools/call', echo),
    ]);
    const [listed, called] = await Promise.all(both.map((response) => response.text()));
    expect(listed).toContain('red__echo');
    expect(called).toContain('red: hé');
    expect(both.map(({ headers }) => headers.get('mcp-session-id'))).toEqual([id, id]);
    expect((await initialize(elsewhere, id)).status).toBe(400);

    expect(await status(elsewhere, id, 'DELETE')).toBe(200);
    expect(await status(elsewhere, id)).toBe(404);
    await eventually(async () => expect(await status(one, id)).toBe(404));
    expect(await status(elsewhere, id, 'DELETE')).toBe(404);
  });

  test.skipIf(skip !== undefined)('serve a client of the official SDK by turns', async () => {
    const red = await upstream();
    const gateways = await twoGateways(await url(), { servers: { red: { url: red.url } } });
    let index = 0;
    const transport = new StreamableHTTPClientTransport(new URL('http://gateway/mcp'), {
      requestInit: { headers: { authorization: `Bearer ${gateways[0].key}` } },
      fetch: (_, init) => fetch(`${gateways[index++ % 2]?.url}/mcp`, init),
    });
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
    onTestFinished(() => client.close());
    for (let n = 0; n < 6; n += 1) {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('red__echo');
      expect(await client.callTool(echo)).toMatchObject({ content: [{ text: 'red: hé' }] });
      expect((await client.listPrompts()).prompts).toHaveLength(1);
      await client.ping();
    }
    await transport.terminateSession();
  });

  test.skipIf(skip !== undefined)('serve nobody but the key that began the session', async () => {
    const red = await upstream();
    const [one, other] = await twoGateways(await url(), { servers: { red: { url: red.url } } });
    const id = await begin(one);
    for (const method of ['tools/list', 'GET', 'DELETE']) expect(await status(other, id, method)).toBe(404);
    expect(await status({ url: other.url, key: one.key }, id)).toBe(200);
    for (const method of ['tools/list', 'GET', 'DELETE']) expect(await status(other, id, method)).toBe(404);
    expect(await status({ url: other.url, key: one.key }, 'x'.repeat(5_000))).toBe(404);
    expect(await status(one, id)).toBe(200);
  });

  test.skipIf(skip !== undefined)('count the sessions of a key together', async () => {
    const limits = { sessionsPerKey: 2 };
    const [one, other] = await twoGateways(await url(), { servers: {}, limits });
    const elsewhere = { url: other.url, key: one.key };
    const [first, second] = [await begin(one), await begin(elsewhere)];
    const stranger = await begin(other);
    const third = await begin(elsewhere);
    expect(await status(elsewhere, first)).toBe(404);
    await eventually(async () => expect(await status(one, first)).toBe(404));
    for (const id of [second, third]) expect(await status(one, id)).toBe(200);
    expect(await status(other, stranger)).toBe(200);
  });

  test.skipIf(skip !== undefined)('end a session that nobody uses', async () => {
    const limits = { idleMinutes: 0.01 };
    const [one, other] = await twoGateways(await url(), { servers: {}, limits });
    const id = await begin(one);
    const elsewhere = { url: other.url, key: one.key };
    await eventually(async () => expect(await status(elsewhere, id)).toBe(404), 900);
    expect(await status(one, id)).toBe(404);
  });

  test.skipIf(skip !== undefined)('end the stream of a session that is deleted elsewhere', async () => {
    const red = await upstream();
    const servers = { red: { url: red.url } };
    const [one, other] = await twoGateways(await url(), { servers, limits: { idleMinutes: 0.1 } });
    const elsewhere = { url: other.url, key: one.key };
    const id = await begin(one);
    const stream = sendRequest(elsewhere, id, 'GET').then((response) => response.text());
    // The gateway that holds the stream hears of changes, although the requests for lists reach the other one.
    await eventually(() => expect(red.sessions()).toBe(1));
    expect(await status(one, id)).toBe(200);
    expect(await status(one, id, 'DELETE')).toBe(200);
    expect(await stream).not.toContain('error');
    expect(await status(elsewhere, id)).toBe(404);
  });

  test.skipIf(skip !== undefined)('keep a session with connections of its own where it began', async () => {
    const red = await upstream();
    const servers = { red: { url: red.url, connection: 'session' as const } };
    const [one, other] = await twoGateways(await url(), { servers });
    const id = await begin(one);
    expect(await status({ url: other.url, key: one.key }, id)).toBe(404);
    expect(await status(one, id)).toBe(200);
  });
});

test('a database that fails is 503 for sessions that began elsewhere, and nothing to those that are known', async () => {
  const sqlite = databases.find(({ kind }) => kind === 'SQLite');
  const [one, other] = await twoGateways((await sqlite?.url()) ?? '', { servers: {} });
  const elsewhere = { url: other.url, key: one.key };
  const id = await begin(one);
  const connection = connectionOf(one.stores);
  connection.exec('ALTER TABLE keyv RENAME TO keyv_away');
  expect(await status(elsewhere, id)).toBe(503);
  expect(await status(elsewhere, id, 'DELETE')).toBe(503);
  expect((await initialize(elsewhere)).status).toBe(503);
  expect(await status(one, id)).toBe(200);
  connection.exec('ALTER TABLE keyv_away RENAME TO keyv');
  await eventually(async () => expect(await status(elsewhere, id)).toBe(200));
});

test('the workers of a gateway serve the sessions of each other', async () => {
  const red = await upstream();
  const plugin = fileURLToPath(new URL('../../../plugins/mcp/index.ts', import.meta.url));
  const gateway = await operate({
    'gateway.config.mjs': `import mcp from '${plugin}';\n${configWith(
      `workers: 2, plugins: [mcp({ servers: { red: { url: '${red.url}' } } })]`,
    )}`,
  });
  onTestFinished(() => gateway.end());
  const { url } = gateway;
  const id = await begin({ url, key: operatedKey });
  await eventually(async () => {
    expect(await status({ url, key: operatedKey }, id)).toBe(200);
    expect(red.sessions()).toBe(2);
  });
});
