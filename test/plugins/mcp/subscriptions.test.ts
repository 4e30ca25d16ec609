import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ProtocolError, type Server } from '@modelcontextprotocol/server';
import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { everythingServer } from '../../support/mcp/everything-server.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';

/* What clients are told of changes at servers, and what servers may say in errors. */

type McpOptions = NonNullable<Parameters<typeof mcp>[0]>;

const uri = 'test://watched-resource';

interface Watched {
  readonly upstream: HttpMcpServer;
  /** Server objects by session, oldest first. */
  readonly made: Server[];
  /** Number of requests of a method. */
  countRequests(method: string): number;
}

async function watched(change: (server: Server) => void = () => {}): Promise<Watched> {
  const made: Server[] = [];
  const upstream = await startMcpServer(() => {
    const server = everythingServer();
    change(server);
    made.push(server);
    return server;
  });
  onTestFinished(() => upstream.close());
  const countRequests = (method: string): number =>
    upstream.requests.filter(({ body }) => body.includes(`"${method}"`)).length;
  return { upstream, made, countRequests };
}

async function start(options: McpOptions): Promise<TestGateway> {
  const gateway = await startGateway({ channels: [demo()], plugins: [mcp(options)] });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Connects a client that keeps the methods and URIs of its notifications. */
async function connect(gateway: TestGateway, era: '2025' | '2026', key = gateway.key) {
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  const client = new Client(
    { name: 'test', version: '1' },
    era === '2026' ? { versionNegotiation: { mode: 'auto' } } : {},
  );
  const notifications: string[] = [];
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    notifications.push(params.uri);
  });
  client.setNotificationHandler('notifications/tools/list_changed', () => void notifications.push('tools'));
  await client.connect(transport);
  onTestFinished(() => client.close());
  const subscribe = async (): Promise<() => Promise<void>> => {
    if (era === '2025') {
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    }
    const open = await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
    return () => open.close();
  };
  return { client, notifications, subscribe };
}

describe.each(['2025', '2026'] as const)('a client of %s that waits for a resource', (era) => {
  test('hears of changes at the server of the resource, and at no other one', async () => {
    const [red, blue] = [await watched(), await watched()];
    const gateway = await start({
      servers: { red: { url: red.upstream.url }, blue: { url: blue.upstream.url } },
    });
    const { client, notifications, subscribe } = await connect(gateway, era);
    await client.listResources();
    const leave = await subscribe();
    await eventually(() => expect(red.countRequests('resources/subscribe')).toBe(1));
    await blue.made.at(-1)?.sendResourceUpdated({ uri });
    await blue.made.at(-1)?.sendToolListChanged();
    await eventually(() => expect(notifications).toContain('tools'));
    expect(notifications).not.toContain(uri);
    await red.made.at(-1)?.sendResourceUpdated({ uri });
    await eventually(() => expect(notifications).toContain(uri));
    await leave();
    await eventually(() => expect(red.countRequests('resources/unsubscribe')).toBe(1));
    expect(blue.countRequests('resources/subscribe')).toBe(0);
  });

  test('is subscribed again when the server has lost its session', async () => {
    const red = await watched();
    const gateway = await start({ servers: { red: { url: red.upstream.url } } });
    const { client, notifications, subscribe } = await connect(gateway, era);
    await subscribe();
    await eventually(() => expect(red.countRequests('resources/subscribe')).toBe(1));
    red.upstream.forget();
    await client.callTool({ name: 'red__test_simple_text' });
    await eventually(() => expect(red.countRequests('resources/subscribe')).toBe(2));
    // Whatever has changed in the meantime.
    await eventually(() => expect(notifications).toContain(uri));
    notifications.splice(0);
    await red.made.at(-1)?.sendResourceUpdated({ uri });
    await eventually(() => expect(notifications).toContain(uri));
  });

  test('does not hear of servers that its key may not use', async () => {
    const [red, blue] = [await watched(), await watched()];
    const gateway = await start({
      servers: { red: { url: red.upstream.url, keys: ['none'] }, blue: { url: blue.upstream.url } },
    });
    const { client, notifications, subscribe } = await connect(gateway, era);
    await subscribe();
    await client.listTools();
    const { value } = await gateway.apiKeys.create({ name: 'none' });
    await (await connect(gateway, '2025', value)).client.listTools();
    await red.made.at(-1)?.sendToolListChanged();
    await red.made.at(-1)?.sendResourceUpdated({ uri });
    await blue.made.at(-1)?.sendResourceUpdated({ uri });
    await eventually(() => expect(notifications).toContain(uri));
    expect(notifications).toEqual([uri]);
  });
});

test('a client subscribes to so many resources and no more, also at once, and to none with a long name', async () => {
  const red = await watched();
  const gateway = await start({ servers: { red: { url: red.upstream.url, concurrency: 100 } } });
  const { client } = await connect(gateway, '2025');
  const subscribed = await Promise.allSettled(
    Array.from({ length: 205 }, (_, n) => client.subscribeResource({ uri: `test://template/${n}/data` })),
  );
  expect(subscribed.filter(({ status }) => status === 'rejected')).toHaveLength(5);
  expect(red.countRequests('resources/subscribe')).toBe(200);
  await client.unsubscribeResource({ uri: 'test://template/1/data' });
  const long = `test://template/${'x'.repeat(5_000)}/data`;
  await expect(client.subscribeResource({ uri: long })).rejects.toThrow('not found');
  await client.subscribeResource({ uri: 'test://template/1/data' });
});

test('streams of notifications of one key are limited', async () => {
  const gateway = await start({ servers: {}, limits: { sessionsPerKey: 2 } });
  const { client } = await connect(gateway, '2026');
  const [first] = [
    await client.listen({ toolsListChanged: true }),
    await client.listen({ toolsListChanged: true }),
  ];
  await expect(client.listen({ toolsListChanged: true })).rejects.toThrow('too many open streams');
  await first.close();
  await eventually(async () => void (await client.listen({ toolsListChanged: true })));
});

test('a client that is refused at its first request keeps no session', async () => {
  const gateway = await start({ servers: {}, limits: { sessionsPerKey: 1 } });
  const { client } = await connect(gateway, '2025');
  const refused = await fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      accept: 'text/html',
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    }),
  });
  expect(refused.status).toBe(406);
  await client.ping();
});

test('the words of a server in an error are cut', async () => {
  const red = await watched((server) =>
    server.setRequestHandler('tools/call', () => {
      throw new ProtocolError(-32_050, 'x'.repeat(1_000_000), { long: 'y'.repeat(1_000_000) });
    }),
  );
  const gateway = await start({ servers: { red: { url: red.upstream.url } } });
  const { client } = await connect(gateway, '2025');
  const refused = await client
    .callTool({ name: 'red__test_simple_text' })
    .catch((error: unknown) => error as ProtocolError);
  expect(refused).toMatchObject({ code: -32_050 });
  expect((refused as ProtocolError).message.length).toBeLessThan(3_000);
  expect((refused as ProtocolError).data).toBeUndefined();
});
