import { Client, StreamableHTTPClientTransport, type CallToolResult } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { everythingServer } from '../../support/mcp/everything-server.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';
import { oddServer } from '../../support/mcp/odd-server.ts';

type McpOptions = NonNullable<Parameters<typeof mcp>[0]>;
type Servers = NonNullable<McpOptions['servers']>;

const script = new URL('../../support/mcp/stdio-server.ts', import.meta.url).pathname;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function start(options: McpOptions): Promise<TestGateway> {
  const gateway = await startGateway({ channels: [demo()], plugins: [mcp(options)] });
  closing.push(() => gateway.close());
  return gateway;
}

async function upstream(name = 'odd', era: '2025' | '2026' = '2025'): Promise<HttpMcpServer> {
  const server = await startMcpServer(() => oddServer(name), { era });
  closing.push(() => server.close());
  return server;
}

const processOf = (name: string): Servers[string] => ({ command: process.execPath, args: [script, name] });

type ClientOptions = ConstructorParameters<typeof Client>[1];

async function connect(
  gateway: TestGateway,
  key = gateway.key,
  options: ClientOptions = {},
  prepare: (client: Client) => void = () => {},
) {
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  const client = new Client({ name: 'test', version: '1' }, options);
  prepare(client);
  await client.connect(transport);
  closing.push(() => client.close());
  return { client, transport };
}

function textOf(result: CallToolResult): string {
  const [first] = result.content;
  return first?.type === 'text' ? first.text : '';
}

const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);

const auto: ClientOptions = { versionNegotiation: { mode: 'auto' } };

describe.each([
  ['2025-11-25', {}],
  ['2026-07-28', auto],
] as const)('a client of %s', (version, options) => {
  test('uses the tools, prompts and resources of several servers under names without clashes', async () => {
    const [red, blue] = [await upstream('red'), await upstream('blue', '2026')];
    const gateway = await start({
      servers: { red: { url: red.url }, blue: { url: blue.url }, local: processOf('local') },
    });
    const { client } = await connect(gateway, gateway.key, options);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    const names = await namesOf(client);
    expect(names).toEqual(expect.arrayContaining(['red__echo', 'blue__echo', 'local__echo']));
    expect(new Set(names).size).toBe(names.length);
    for (const name of ['red', 'blue', 'local'])
      expect(textOf(await client.callTool({ name: `${name}__echo`, arguments: { text: 'hé' } }))).toBe(
        `${name}: hé`,
      );
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(['red__greet', 'blue__greet', 'local__greet']);
    expect(await client.getPrompt({ name: 'blue__greet', arguments: { who: 'Ann' } })).toMatchObject({
      messages: [{ content: { text: 'Greet Ann for blue' } }],
    });
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toContain('note://blue/first');
    expect(await client.readResource({ uri: 'note://blue/first' })).toMatchObject({
      contents: [{ text: 'a note of blue' }],
    });
    await expect(client.readResource({ uri: 'note://green/first' })).rejects.toMatchObject({
      message: expect.stringContaining('not found') as string,
    });
    await expect(client.callTool({ name: 'red__nothing' })).rejects.toMatchObject({ code: -32602 });
    expect(await client.callTool({ name: 'red__fail' })).toMatchObject({ isError: true });
  });

  test('misses only the tools of a server that is down', async () => {
    const red = await upstream('red');
    const gateway = await start({
      servers: { red: { url: red.url }, gone: { url: 'http://127.0.0.1:9/mcp' } },
    });
    const { client } = await connect(gateway, gateway.key, options);
    const names = await namesOf(client);
    expect(names).toContain('red__echo');
    expect(names.filter((name) => name.startsWith('gone__'))).toEqual([]);
    expect(gateway.lines.map(({ msg }) => msg)).toContain('an MCP server is missing from a list');
    await expect(client.callTool({ name: 'gone__echo', arguments: {} })).rejects.toMatchObject({
      code: -32_000,
      data: { code: 'upstream_error' },
    });
  });

  test('runs many calls at once, gets progress, and cancels', async () => {
    const gateway = await start({ servers: { red: { url: (await upstream('red')).url } } });
    const { client } = await connect(gateway, gateway.key, options);
    const texts = await Promise.all(
      Array.from({ length: 40 }, async (_, n) =>
        textOf(await client.callTool({ name: 'red__echo', arguments: { text: `${n}` } })),
      ),
    );
    expect(texts).toEqual(Array.from({ length: 40 }, (_, n) => `red: ${n}`));
    const progress: unknown[] = [];
    await client.callTool(
      { name: 'red__sleep', arguments: { ms: 20 } },
      { onprogress: (one) => void progress.push(one) },
    );
    expect(progress).toEqual([{ progress: 1, total: 2, message: 'half' }]);
    const left = new AbortController();
    const running = client.callTool(
      { name: 'red__sleep', arguments: { ms: 60_000 } },
      { signal: left.signal },
    );
    setTimeout(() => left.abort(new Error('enough')), 50);
    await expect(running).rejects.toThrow('enough');
    await eventually(() =>
      expect(gateway.lines.findLast(({ operation }) => operation === 'tool')).toMatchObject({
        model: 'red__sleep',
        ended: 'left',
      }),
    );
  });
});

describe('rights', () => {
  test('each key sees and calls what it may use', async () => {
    const [red, blue] = [await upstream('red'), await upstream('blue')];
    const gateway = await start({
      servers: {
        red: { url: red.url, tools: { deny: ['die', 'gr*'] } },
        blue: { url: blue.url, keys: ['team-b*'] },
      },
      access: [
        { keys: ['team-a*'], allow: ['*__echo', 'red__sleep'] },
        { keys: ['team-b*'], deny: ['red__*'] },
      ],
    });
    const keyOf = async (name: string) => (await gateway.apiKeys.create({ name })).value;
    const one = (await connect(gateway, await keyOf('team-a-1'))).client;
    expect(await namesOf(one)).toEqual(['red__echo', 'red__sleep']);
    await expect(one.callTool({ name: 'blue__echo', arguments: { text: 'x' } })).rejects.toMatchObject({
      code: -32602,
    });
    await expect(one.callTool({ name: 'red__process' })).rejects.toMatchObject({ code: -32602 });
    const two = (await connect(gateway, await keyOf('team-b-1'))).client;
    expect(await namesOf(two)).toEqual(expect.arrayContaining(['blue__echo', 'blue__die']));
    expect(await namesOf(two)).not.toContain('red__echo');
    const other = (await connect(gateway)).client;
    expect(await namesOf(other)).toEqual([]);
  });

  test('a session belongs to the key that opened it', async () => {
    const gateway = await start({ servers: { red: { url: (await upstream('red')).url } } });
    const { client, transport } = await connect(gateway);
    const id = transport.sessionId ?? '';
    expect(id).not.toBe('');
    const thief = (await gateway.apiKeys.create({ name: 'thief' })).value;
    const sendRequest = (key: string, method: string, session: string) =>
      fetch(`${gateway.url}/mcp`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          'mcp-session-id': session,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'mcp-protocol-version': '2025-11-25',
        },
        ...(method === 'POST'
          ? { body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }) }
          : {}),
      });
    for (const method of ['POST', 'GET', 'DELETE'])
      expect((await sendRequest(thief, method, id)).status).toBe(404);
    expect((await sendRequest(gateway.key, 'POST', 'unknown')).status).toBe(404);
    expect(await namesOf(client)).toContain('red__echo');
    expect((await sendRequest(gateway.key, 'DELETE', id)).status).toBe(200);
    expect((await sendRequest(gateway.key, 'POST', id)).status).toBe(404);
  });

  test('nobody gets in without a key, from a foreign page, or without a session', async () => {
    const gateway = await start({ servers: {}, origins: ['https://app.example.com'] });
    const post = (headers: Record<string, string>, method = 'initialize') =>
      fetch(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method,
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'test', version: '1' },
          },
        }),
      });
    const refused = await post({});
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    const key = { authorization: `Bearer ${gateway.key}` };
    expect((await post({ 'x-sluice-key': gateway.key })).status).toBe(200);
    expect((await post({ ...key, origin: 'http://evil.example.com' })).status).toBe(403);
    expect((await post({ ...key, origin: 'https://app.example.com' })).status).toBe(200);
    expect((await post({ ...key, origin: 'http://localhost:5173' })).status).toBe(200);
    expect((await post(key, 'tools/list')).status).toBe(400);
    expect((await fetch(`${gateway.url}/mcp`, { headers: key })).status).toBe(400);
  });

  test('sessions of a key make room for each other, and end when nobody uses them', async () => {
    const gateway = await start({
      servers: { red: { url: (await upstream('red')).url } },
      limits: { sessionsPerKey: 2, idleMinutes: 0.01 },
    });
    const [one, two, three] = [await connect(gateway), await connect(gateway), await connect(gateway)];
    await expect(one.client.ping()).rejects.toMatchObject({ status: 404 });
    await two.client.ping();
    await three.client.ping();

    await two.client.close();
    await eventually(async () => {
      const response = await fetch(`${gateway.url}/mcp`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${gateway.key}`, 'mcp-session-id': two.transport.sessionId ?? '' },
      });
      expect(response.status).toBe(404);
    }, 900);
  });

  test('a key may begin only so many sessions in a minute', async () => {
    const gateway = await start({ servers: {}, limits: { sessionsPerKey: 1 } });
    for (let n = 0; n < 5; n += 1) await connect(gateway);
    await expect(connect(gateway)).rejects.toMatchObject({ status: 429 });
  });
});

describe('money and limits', () => {
  const records = async (gateway: TestGateway) =>
    (await openUsageLog(gateway.stores).page({}, 50)).records.filter(({ operation }) => operation === 'tool');

  test('each call of a tool is recorded under its name and charged with its price', async () => {
    const gateway = await start({
      servers: { red: { url: (await upstream('red')).url, chargeMicroDollars: 250 } },
    });
    const { client } = await connect(gateway);
    await client.callTool({ name: 'red__echo', arguments: { text: 'x' } });
    await client.callTool({ name: 'red__fail' });
    await expect(client.callTool({ name: 'red__echo', arguments: { text: 1 } })).resolves.toMatchObject({
      isError: true,
    });
    await eventually(async () => expect(await records(gateway)).toHaveLength(3));
    expect(await records(gateway)).toEqual([
      expect.objectContaining({ model: 'red__echo', status: 200, microDollars: 250, ended: 'complete' }),
      expect.objectContaining({ model: 'red__fail', status: 200, microDollars: 250 }),
      expect.objectContaining({ model: 'red__echo', status: 200, microDollars: 250 }),
    ]);
  });

  test('a call that a budget has no room for is refused before its server is asked', async () => {
    const red = await upstream('red');
    const gateway = await start({ servers: { red: { url: red.url } }, chargeMicroDollars: 400 });
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1_000 }] as const;
    const { value } = await gateway.apiKeys.create({ name: 'poor', budgets });
    const { client } = await connect(gateway, value);
    const call = () => client.callTool({ name: 'red__echo', arguments: { text: 'x' } });
    const all = await Promise.allSettled(Array.from({ length: 8 }, call));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(all.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: -32_000, data: { code: 'insufficient_quota', status: 429 } },
    });
    expect(red.requests.filter(({ body }) => body.includes('"tools/call"'))).toHaveLength(2);
    await eventually(async () => expect(await records(gateway)).toHaveLength(8));
    const sum = (await records(gateway)).reduce((total, { microDollars = 0 }) => total + microDollars, 0);
    expect(sum).toBe(800);
  });

  test('the limits of the key, and those of the endpoint, hold for calls of tools', async () => {
    const red = await upstream('red');
    const gateway = await start({ servers: { red: { url: red.url } }, limits: { callsPerMinute: 3 } });
    const { value } = await gateway.apiKeys.create({ name: 'slow', requestsPerMinute: 2 });
    const call = (client: Client) => client.callTool({ name: 'red__echo', arguments: { text: 'x' } });
    const slow = (await connect(gateway, value)).client;
    await namesOf(slow);
    await call(slow);
    await call(slow);
    await expect(call(slow)).rejects.toMatchObject({ data: { code: 'rate_limit_exceeded', status: 429 } });
    const { client } = await connect(gateway);
    for (let n = 0; n < 3; n += 1) await call(client);
    await expect(call(client)).rejects.toMatchObject({ data: { code: 'rate_limit_exceeded' } });
    const one = (await gateway.apiKeys.create({ name: 'narrow', concurrency: 1 })).value;
    const narrow = (await connect(gateway, one)).client;
    const running = narrow.callTool({ name: 'red__sleep', arguments: { ms: 300 } });
    await expect.poll(() => red.requests.some(({ body }) => body.includes('"sleep"'))).toBe(true);
    await expect(call(narrow)).rejects.toMatchObject({ data: { status: 429 } });
    await running;
  });

  test('what failed costs nothing; what was left costs its price', async () => {
    const red = await upstream('red');
    const gateway = await start({
      servers: { red: { url: red.url, seconds: 0.3 } },
      chargeMicroDollars: 100,
      limits: { resultBytes: 2_000 },
    });
    const { client } = await connect(gateway);
    await expect(client.callTool({ name: 'red__sleep', arguments: { ms: 60_000 } })).rejects.toMatchObject({
      data: { code: 'upstream_timeout', status: 504 },
    });
    await expect(client.callTool({ name: 'red__grow', arguments: { bytes: 5_000 } })).rejects.toMatchObject({
      message: expect.stringContaining('at most 2000 are allowed') as string,
    });
    await eventually(async () => expect(await records(gateway)).toHaveLength(2));
    expect((await records(gateway)).map(({ status, microDollars = 0 }) => [status, microDollars])).toEqual([
      [502, 0],
      [504, 0],
    ]);
    expect(gateway.lines.map(({ msg }) => msg)).not.toContain('failed to send an error response');
  });
});

describe('what servers say and ask', () => {
  test('lists that change are told to sessions', async () => {
    const gateway = await start({ servers: { red: { url: (await upstream('red')).url } } });
    const notifications: string[] = [];
    const { client } = await connect(gateway, gateway.key, {}, (made) =>
      made.setNotificationHandler('notifications/tools/list_changed', () => void notifications.push('tools')),
    );
    await client.callTool({ name: 'red__rename' });
    await eventually(() => expect(notifications).toContain('tools'));
    expect(await namesOf(client)).toEqual(expect.arrayContaining(['red__after']));
    expect(textOf(await client.callTool({ name: 'red__after' }))).toBe('renamed');
  });

  test('a server with a connection for each session may ask the client; a shared one may not', async () => {
    const own = await upstream('own');
    const gateway = await start({
      servers: {
        own: { url: own.url, connection: 'session' },
        shared: { url: (await upstream('shared')).url },
      },
    });
    const connectAs = (name: string) =>
      connect(gateway, gateway.key, { capabilities: { elicitation: {} } }, (made) =>
        made.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name } })),
      );
    const [ann, bob] = [(await connectAs('Ann')).client, (await connectAs('Bob')).client];
    const answers = await Promise.all([ann, bob].map((one) => one.callTool({ name: 'own__ask' })));
    expect(answers.map(textOf)).toEqual([
      '{"action":"accept","content":{"name":"Ann"}}',
      '{"action":"accept","content":{"name":"Bob"}}',
    ]);
    expect(own.sessions()).toBe(2);
    expect(await ann.callTool({ name: 'shared__ask' })).toMatchObject({ isError: true });
  });

  test('the client may subscribe to resources of a server', async () => {
    const red = await startMcpServer(everythingServer);
    closing.push(() => red.close());
    const gateway = await start({ servers: { red: { url: red.url } } });
    const [one, two] = [await connect(gateway), await connect(gateway)];
    const uri = 'test://watched-resource';
    const countRequests = (method: string) =>
      red.requests.filter(({ body }) => body.includes(`"${method}"`)).length;
    await one.client.subscribeResource({ uri });
    await two.client.subscribeResource({ uri });
    await one.client.unsubscribeResource({ uri });
    expect(countRequests('resources/unsubscribe')).toBe(0);
    await two.transport.terminateSession();
    await expect.poll(() => countRequests('resources/unsubscribe')).toBe(1);
  });
});

describe('failures', () => {
  test('a process that is killed in the middle of a call fails that call alone, and runs again', async () => {
    const gateway = await start({
      servers: { local: processOf('local'), red: { url: (await upstream('red')).url } },
    });
    const { client } = await connect(gateway);
    await namesOf(client);
    const other = client.callTool({ name: 'red__sleep', arguments: { ms: 200 } });
    await expect(client.callTool({ name: 'local__die' })).rejects.toMatchObject({
      data: { code: 'upstream_cut', status: 502 },
    });
    expect(textOf(await other)).toBe('slept');
    expect(textOf(await client.callTool({ name: 'local__echo', arguments: { text: 'again' } }))).toBe(
      'local: again',
    );
    expect(textOf(await client.callTool({ name: 'local__babble' }))).toBe('babbled');
    await expect(
      client.callTool({ name: 'local__grow', arguments: { bytes: 10_000_000 } }),
    ).rejects.toMatchObject({ message: expect.stringContaining('longer than') as string });
  });

  test('a gateway that stops ends the streams of its sessions, and the processes', async () => {
    const gateway = await startGateway({
      channels: [demo()],
      plugins: [mcp({ servers: { local: processOf('local') } })],
      timeouts: { drain: 600_000 },
    });
    const { client } = await connect(gateway);
    const { pid } = JSON.parse(textOf(await client.callTool({ name: 'local__process' }))) as { pid: number };
    await gateway.close();
    await eventually(() => {
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    });
  });

  test('what is no message of the protocol is refused', async () => {
    const gateway = await start({ servers: {} });
    const post = (body: string, type = 'application/json') =>
      fetch(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.key}`,
          accept: 'application/json, text/event-stream',
          'content-type': type,
        },
        body,
      });
    expect((await post('{')).status).toBe(400);
    expect((await post('[]')).status).toBe(400);
    expect((await post('{}')).status).toBe(400);
    expect((await post('{"jsonrpc":"2.0","id":1,"method":"initialize"}')).status).toBe(400);
    expect((await post('hello', 'text/plain')).status).toBe(415);
    expect(gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
