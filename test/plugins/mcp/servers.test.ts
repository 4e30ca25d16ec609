import { createHash } from 'node:crypto';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { entriesOf, openStores } from '../../../core/state/stores.ts';
import { openServices } from '../../../core/upstream/services.ts';
import {
  addressSchema,
  openToolServer,
  processSchema,
  type ToolResult,
  type ToolServer,
  type ToolServerHooks,
} from '../../../plugins/mcp/servers/index.ts';
import { boundedFetch } from '../../../plugins/mcp/servers/fetch.ts';
import { openTokenVault } from '../../../plugins/mcp/servers/token-vault.ts';
import { eventually } from '../../support/eventually.ts';
import { keptLog } from '../../support/log.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';
import { oddServer } from '../../support/mcp/odd-server.ts';
import { startOAuthServer, type OAuthServer } from '../../support/mcp/oauth-server.ts';

const script = new URL('../../support/mcp/stdio-server.ts', import.meta.url).pathname;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const stores = openStores('sqlite::memory:');
afterAll(() => stores.close());

function open(
  config: Record<string, unknown>,
  hooks: ToolServerHooks & { maxRequestMs?: number } = {},
  own = stores,
) {
  const { log, lines } = keptLog();
  const http = openServices();
  const schema = 'command' in config ? processSchema : addressSchema;
  const server = openToolServer({
    name: 'odd',
    config: schema.parse(config),
    tools: { log, http, stores: own },
    ...hooks,
  });
  closing.push(
    () => http.close(),
    () => server.close(),
  );
  return { server, lines };
}

const startProcess = (more: Record<string, unknown> = {}, ...args: string[]) =>
  open({ command: process.execPath, args: [script, 'odd', ...args], ...more });

async function startHttp(options: Parameters<typeof startMcpServer>[1] = {}): Promise<HttpMcpServer> {
  const upstream = await startMcpServer(() => oddServer(), options);
  closing.push(() => upstream.close());
  return upstream;
}

function textOf({ content }: ToolResult): string {
  const [first] = content;
  return first?.type === 'text' ? first.text : '';
}

const processOf = async (server: ToolServer) =>
  JSON.parse(textOf(await server.callTool('process', {}))) as { pid: number; env: Record<string, string> };

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('a server that the gateway starts', () => {
  test('lists its tools and runs them, several at once', async () => {
    const { server } = startProcess();
    const tools = await server.listTools();
    expect(tools.find(({ name }) => name === 'echo')).toMatchObject({
      description: 'Repeats a text.',
      inputSchema: { type: 'object', required: ['text'] },
    });
    const texts = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => textOf(await server.callTool('echo', { text: `${n}` }))),
    );
    expect(texts).toEqual(Array.from({ length: 50 }, (_, n) => `odd: ${n}`));
    expect(await server.callTool('fail', {})).toMatchObject({ isError: true });
  });

  test('sees the environment that it is given and no other', async () => {
    process.env['SLUICE_SECRET_OF_TEST'] = 'hidden';
    const { server } = startProcess({ env: { GIVEN: 'yes' } });
    const { env } = await processOf(server);
    delete process.env['SLUICE_SECRET_OF_TEST'];
    expect(env['GIVEN']).toBe('yes');
    expect(Object.keys(env)).not.toContain('SLUICE_SECRET_OF_TEST');
  });

  test('is started again after it was killed in the middle of a call', async () => {
    const { server, lines } = startProcess();
    const { pid } = await processOf(server);
    const running = server.callTool('sleep', { ms: 60_000 });
    running.catch(() => undefined);
    await expect(server.callTool('die', {})).rejects.toMatchObject({ code: 'upstream_cut' });
    await expect(running).rejects.toMatchObject({ code: 'upstream_cut' });
    const again = await processOf(server);
    expect(again.pid).not.toBe(pid);
    expect(lines.map(({ msg }) => msg)).toContain('an MCP server closed its connection');
  });

  test('ends with its connection, and so do its children', async () => {
    const { server } = open({ command: 'sh', args: ['-c', `"${process.execPath}" "${script}" odd; true`] });
    const { pid } = await processOf(server);
    expect(isAlive(pid)).toBe(true);
    await server.close();
    await eventually(() => !isAlive(pid));
  });

  test('ends with its children also when these ignore the end of their input', async () => {
    const { server, lines } = open({
      command: 'sh',
      args: ['-c', `sleep 600 & echo "child $!" >&2; exec "${process.execPath}" "${script}" odd`],
    });
    await server.listTools();
    const child = await eventually(() => {
      const line = lines.map(({ line: text }) => String(text)).find((text) => text.startsWith('child '));
      expect(line).toBeDefined();
      return Number(line?.slice('child '.length));
    });
    expect(isAlive(child)).toBe(true);
    await server.close();
    await eventually(() => expect(isAlive(child)).toBe(false));
  });

  test('is not closed because calls wait in vain for those before them', async () => {
    const { server, lines } = startProcess({ concurrency: 1 });
    await server.listTools();
    const running = server.callTool('sleep', { ms: 1_000 });
    const waiting = [1, 2, 3, 4].map(() => server.callTool('echo', { text: 'late' }, { timeoutMs: 100 }));
    for (const outcome of await Promise.allSettled(waiting))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'upstream_timeout' } });
    expect(textOf(await running)).toBe('slept');
    expect(lines.map(({ msg }) => msg)).not.toContain('an MCP server hangs: its connection is closed');
  });

  test('fails only the call whose answer is too long', async () => {
    const { server } = startProcess({ maxMessageBytes: 1_000_000 });
    const { pid } = await processOf(server);
    const running = server.callTool('sleep', { ms: 300 });
    await expect(server.callTool('grow', { bytes: 10_000_000 })).rejects.toMatchObject({
      code: 'upstream_error',
      message: expect.stringContaining('longer than 1000000 bytes') as string,
    });
    expect(textOf(await running)).toBe('slept');
    expect((await processOf(server)).pid).toBe(pid);
    await expect(server.callTool('grow', { bytes: 50_000 }, { maxBytes: 10_000 })).rejects.toThrow(
      'at most 10000 are allowed',
    );
  });

  test('may write what is no message', async () => {
    const { server } = startProcess();
    expect(textOf(await server.callTool('babble', {}))).toBe('babbled');
  });

  test('tells when it renames a tool', async () => {
    let changes = 0;
    const { server } = open(
      { command: process.execPath, args: [script] },
      { changed: () => void (changes += 1) },
    );
    await expect(server.callTool('after', {})).rejects.toMatchObject({ code: 'not_found' });
    expect(textOf(await server.callTool('before', {}))).toBe('renamed');
    await server.callTool('rename', {});
    await eventually(() => changes > 0);
    expect(textOf(await server.callTool('after', {}))).toBe('renamed');
    await expect(server.callTool('before', {})).rejects.toMatchObject({ code: 'not_found' });
  });

  test('reports progress, and learns that a call was given up', async () => {
    const { server } = startProcess();
    const progress: unknown[] = [];
    const result = await server.callTool(
      'sleep',
      { ms: 50 },
      { onProgress: (one) => void progress.push(one) },
    );
    expect(textOf(result)).toBe('slept');
    expect(progress).toEqual([{ progress: 1, total: 2, message: 'half' }]);
    const left = new AbortController();
    const running = server.callTool('sleep', { ms: 60_000 }, { signal: left.signal });
    setTimeout(() => left.abort(new Error('gone')), 50);
    await expect(running).rejects.toThrow('gone');
  });

  test('reports progress also in one piece with the result', async () => {
    const program = `
      require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method, params } = JSON.parse(line);
        const results = {
          initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
          'tools/list': { tools: [{ name: 'burst', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: 'done' }] },
        };
        const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: params?._meta?.progressToken, progress: 1 } };
        const messages = [...(method === 'tools/call' ? [progress] : []), { jsonrpc: '2.0', id, result: results[method] }];
        if (id !== undefined) process.stdout.write(messages.map((one) => JSON.stringify(one) + '\\n').join(''));
      });`;
    const { server } = open({ command: process.execPath, args: ['-e', program] });
    const progress: unknown[] = [];
    await server.callTool('burst', {}, { onProgress: (one) => void progress.push(one) });
    expect(progress).toEqual([{ progress: 1 }]);
  });

  test('is given up on in time, and closed when it hangs again and again', async () => {
    const { server, lines } = startProcess();
    const { pid } = await processOf(server);
    for (let n = 0; n < 3; n += 1)
      await expect(
        server.callTool('sleep', { ms: 60_000, stubborn: true }, { timeoutMs: 100 }),
      ).rejects.toMatchObject({ code: 'upstream_timeout', status: 504 });
    expect(lines.map(({ msg }) => msg)).toContain('an MCP server hangs: its connection is closed');
    expect((await processOf(server)).pid).not.toBe(pid);
  });

  test('is not waited for when it never accepts, cannot be started, or failed just now', async () => {
    const silent = startProcess({ connectTimeout: 0.3 }, 'silent');
    await expect(silent.server.listTools()).rejects.toMatchObject({ code: 'upstream_timeout' });
    await expect(silent.server.listTools()).rejects.toMatchObject({ status: 503 });
    const missing = open({ command: '/nowhere/at/all' });
    await expect(missing.server.listTools()).rejects.toMatchObject({ code: 'upstream_error' });
    expect(missing.lines.map(({ msg }) => msg)).toContain('an MCP server cannot be connected to');
  });

  test('gets no more calls at once than allowed, and only so many wait', async () => {
    const { server } = startProcess({ concurrency: 1 });
    await server.listTools();
    const calls = Array.from({ length: 7 }, () => server.callTool('sleep', { ms: 100 }));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'server_is_overloaded', retryAfter: 1 },
    });
  });

  test('has its standard error in the log', async () => {
    const { server, lines } = startProcess();
    await server.listTools();
    await eventually(() => expect(lines.map(({ line }) => line)).toContain('odd is ready'));
  });
});

describe.each(['2025', '2026'] as const)('a server behind HTTP of %s', (era) => {
  test('lists its tools and runs them with the configured headers', async () => {
    const upstream = await startHttp({ era });
    const { server } = open({ url: upstream.url, headers: { 'x-tenant': 'blue' } });
    expect(textOf(await server.callTool('echo', { text: 'hé' }))).toBe('odd: hé');
    expect(new Set(upstream.requests.map(({ headers }) => headers['x-tenant']))).toEqual(new Set(['blue']));
    expect(upstream.sessions()).toBe(era === '2025' ? 1 : 0);
  });

  test('fails only the call whose answer is too long', async () => {
    const upstream = await startHttp({ era });
    const { server } = open({ url: upstream.url, maxMessageBytes: 100_000 });
    const running = server.callTool('sleep', { ms: 300 });
    await expect(server.callTool('grow', { bytes: 1_000_000 }, { timeoutMs: 20_000 })).rejects.toMatchObject({
      code: 'upstream_error',
    });
    expect(textOf(await running)).toBe('slept');
  });
});

describe('a server behind HTTP', () => {
  test('that lost its sessions gets another one', async () => {
    const upstream = await startHttp();
    const { server } = open({ url: upstream.url });
    await server.listTools();
    upstream.forget();
    expect(textOf(await server.callTool('echo', { text: 'again' }))).toBe('odd: again');
  });

  test('that lost its sessions gets one new session from many requests, and is asked for its tools again', async () => {
    const upstream = await startHttp();
    const { server } = open({ url: upstream.url });
    await server.listTools();
    upstream.forget();
    const calls = Array.from({ length: 8 }, (_, n) => server.callTool('echo', { text: `${n}` }));
    expect((await Promise.all(calls)).map(textOf)).toEqual(calls.map((_, n) => `odd: ${n}`));
    await server.listTools();
    const sent = (method: string): number =>
      upstream.requests.filter(({ body }) => body.includes(`"method":"${method}"`)).length;
    expect(sent('initialize')).toBe(2);
    expect(sent('tools/list')).toBe(2);
  });

  test('is told that its session has ended', async () => {
    const upstream = await startHttp();
    const { server } = open({ url: upstream.url });
    await server.listTools();
    expect(upstream.sessions()).toBe(1);
    await server.close();
    expect(upstream.sessions()).toBe(0);
  });

  test('that is not found is connected to once for each request', async () => {
    let posts = 0;
    const upstream = await startHttp({
      gate: (_request, response) => {
        posts += 1;
        response.writeHead(404).end();
        return true;
      },
    });
    const { server } = open({ url: upstream.url, protocol: '2025' });
    await expect(server.listTools()).rejects.toMatchObject({
      code: 'upstream_error',
      message: 'The MCP server "odd" cannot be reached.',
    });
    expect(posts).toBe(1);
  });

  test('that is gone is an error that names no address', async () => {
    const upstream = await startHttp();
    await upstream.close();
    const { server } = open({ url: upstream.url });
    const refused = await server.listTools().catch((error: unknown) => error as Error);
    expect(refused).toMatchObject({ code: 'upstream_error' });
    expect(String(refused)).not.toContain(new URL(upstream.url).host);
  });

  test.each([
    [404, 'that is not there'],
    [500, 'that fails'],
  ])('is an error that quotes little of a long response: %i, one %s', async (status) => {
    const upstream = await startHttp({
      gate: (_request, response) => {
        response.writeHead(status).end('x'.repeat(1_000_000));
        return true;
      },
    });
    const { server, lines } = open({ url: upstream.url, protocol: '2025' });
    const refused = await server.listTools().catch((error: unknown) => error as Error);
    expect(String(refused).length).toBeLessThan(500);
    const logged = lines.find(({ msg }) => msg === 'an MCP server cannot be connected to');
    expect(logged).toBeDefined();
    expect(JSON.stringify(logged).length).toBeLessThan(20_000);
  });

  test('that never answers is given up on', async () => {
    const upstream = await startHttp({ gate: () => true });
    const { server } = open({ url: upstream.url, connectTimeout: 0.3 });
    await expect(server.listTools()).rejects.toMatchObject({ code: 'upstream_timeout' });
  });

  test('is not followed elsewhere', async () => {
    const other = await startHttp();
    const upstream = await startHttp({
      gate: (_request, response) => {
        response.writeHead(307, { location: other.url }).end();
        return true;
      },
    });
    const { server } = open({ url: upstream.url });
    await expect(server.listTools()).rejects.toMatchObject({ code: 'upstream_error' });
    expect(other.requests).toEqual([]);
  });
});

describe('a server that wants OAuth', () => {
  const start = async (): Promise<{ auth: OAuthServer; upstream: HttpMcpServer }> => {
    const auth = await startOAuthServer({
      clientId: 'gateway',
      clientSecret: 's3cret',
      refreshToken: 'first',
    });
    closing.push(() => auth.close());
    return { auth, upstream: await startHttp({ gate: auth.gate }) };
  };

  test('gets a token of client credentials, and another when that is no longer good', async () => {
    const { auth, upstream } = await start();
    const oauth = { clientId: 'gateway', clientSecret: 's3cret', issuer: auth.url };
    const { server } = open({ url: upstream.url, oauth });
    expect(textOf(await server.callTool('echo', { text: 'in' }))).toBe('odd: in');
    auth.revoke();
    expect(
      await eventually(async () => textOf(await server.callTool('echo', { text: 'still in' })), 500),
    ).toBe('odd: still in');
    expect(auth.grants).toEqual(['client_credentials', 'client_credentials']);
  });

  test('gets tokens of a refresh token that changes with each use, once for many requests, also after a restart', async () => {
    const { auth, upstream } = await start();
    const oauth = { clientId: 'gateway', clientSecret: 's3cret', refreshToken: 'first', issuer: auth.url };
    const config = { url: upstream.url, oauth };
    const { server } = open(config);
    const all = Array.from({ length: 10 }, () => server.callTool('echo', { text: 'many' }));
    expect((await Promise.all(all)).map(textOf)).toEqual(all.map(() => 'odd: many'));
    auth.revoke();
    expect(textOf(await open(config).server.callTool('echo', { text: 'on' }))).toBe('odd: on');
    expect(auth.grants).toEqual(['refresh_token', 'refresh_token']);
    const kept = await Array.fromAsync(entriesOf(stores.namespace('mcp-tokens')));
    expect(kept.length).toBeGreaterThan(0);
    expect(JSON.stringify(kept)).not.toContain('refresh-');
  });

  test('gets no credentials when it names another issuer, and refused ones are an error', async () => {
    const { auth, upstream } = await start();
    const other = { clientId: 'gateway', clientSecret: 's3cret', issuer: 'https://auth.example.com' };
    await expect(open({ url: upstream.url, oauth: other }).server.listTools()).rejects.toMatchObject({
      code: 'upstream_error',
    });
    expect(auth.grants).toEqual([]);
    const wrong = { clientId: 'gateway', clientSecret: 'wrong', issuer: auth.url };
    await expect(open({ url: upstream.url, oauth: wrong }).server.listTools()).rejects.toMatchObject({
      code: 'upstream_error',
    });
  });
});

describe('tokens of several workers', () => {
  test('are renewed by one worker at a time', async () => {
    const vaults = [1, 2, 3].map(() => openTokenVault(stores, 'shared'));
    let running = 0;
    let most = 0;
    const job = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await stores.namespace('mcp-tokens').get('anything');
      running -= 1;
    };
    await Promise.all(vaults.map((vault) => vault.alone(job)));
    expect(most).toBe(1);
  });

  test('stay locked for a worker that took over an expired lock', async () => {
    const lock = `lock ${createHash('sha256').update('id slow').digest('base64url')}`;
    const entries = stores.namespace<string>('mcp-tokens');
    await openTokenVault(stores, 'slow').alone(async () => {
      await entries.set(lock, 'another worker', 60_000);
    });
    expect(await entries.get(lock)).toBe('another worker');
    await entries.delete(lock);
  });

  test('are read from the database once for many requests', async () => {
    const auth = await startOAuthServer({ clientId: 'gateway', clientSecret: 's3cret', refreshToken: 'one' });
    closing.push(() => auth.close());
    const upstream = await startHttp({ gate: auth.gate });
    let reads = 0;
    const counting: typeof stores = {
      ...stores,
      namespace<Value>(name: string) {
        const entries = stores.namespace<Value>(name);
        const get = entries.get.bind(entries);
        return Object.assign(entries, {
          get: ((key: string) => {
            reads += 1;
            return get(key);
          }) as typeof entries.get,
        });
      },
    };
    const oauth = { clientId: 'gateway', clientSecret: 's3cret', refreshToken: 'one', issuer: auth.url };
    const { server } = open({ url: upstream.url, oauth }, {}, counting);
    await server.callTool('echo', { text: 'first' });
    const before = reads;
    for (let n = 0; n < 5; n += 1) await server.callTool('echo', { text: 'next' });
    expect(reads).toBe(before);
  });
});

describe('the bytes of a response', () => {
  const fetched = (pieces: readonly string[], type: string, status = 200) => {
    const seen = { isClosed: false };
    const fetch = boundedFetch(
      {
        async open() {
          const body = (async function* () {
            for (const piece of pieces) yield Buffer.from(piece);
          })();
          const close = (): void => void (seen.isClosed = true);
          return { status, headers: { 'content-type': type }, body, close };
        },
      },
      { timeoutMs: 60_000, maxBytes: 20 },
    );
    return { seen, response: Promise.resolve(fetch('http://server.test/', {})) };
  };

  test.each([
    ['LF', ['data: 1234567\n', '\ndata: 1234567\n', '\n']],
    ['CR', ['data: 1234567\r\rdata: 1234567\r\r']],
    ['CRLF', ['data: 1234567\r\n\r', '\ndata: 1234567\r', '\n\r\n']],
    ['several in one piece', ['data: 1\n\ndata: 2\n\ndata: 3\n\n']],
  ])('of a stream are counted for each event: %s', async (_, pieces) => {
    const text = await (await fetched(pieces, 'text/event-stream').response).text();
    expect(text).toBe(pieces.join(''));
  });

  test.each([
    ['text/event-stream', ['data: 123456\n', 'data: 1234567\n\n']],
    ['application/json', ['1234567890\n\n', '1234567890']],
  ])('are limited: %s', async (type, pieces) => {
    const response = await fetched(pieces, type).response;
    await expect(response.text()).rejects.toThrow('longer than 20 bytes');
  });

  test('are given up when nobody wants them, or none may come', async () => {
    const left = fetched(['data: 1\n\n'], 'text/event-stream');
    await (await left.response).body?.cancel();
    expect(left.seen.isClosed).toBe(true);
    const empty = fetched(['surplus'], 'text/plain', 204);
    expect((await empty.response).body).toBeNull();
    expect(empty.seen.isClosed).toBe(true);
  });
});
