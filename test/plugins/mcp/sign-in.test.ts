import { expect, onTestFinished, test } from 'vitest';
import { openStores } from '../../../core/state/stores.ts';
import { openServices } from '../../../core/upstream/services.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { readGrant } from '../../../plugins/mcp/servers/grant.ts';
import { addressSchema, openToolServer } from '../../../plugins/mcp/servers/index.ts';
import { sluice, start } from '../../core/cli/_process.ts';
import { keptLog } from '../../support/log.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';
import { startOAuthServer, type OAuthServer } from '../../support/mcp/oauth-server.ts';
import { oddServer } from '../../support/mcp/odd-server.ts';
import { sluiceProgram } from '../../support/program.ts';

/* A person signs in once at an MCP server, for the gateway. */

async function servers(
  more: { issuer?: string } = {},
): Promise<{ auth: OAuthServer; upstream: HttpMcpServer }> {
  const auth = await startOAuthServer({
    clientId: 'gateway',
    clientSecret: 's3cret',
    refreshToken: 'none',
    ...more,
  });
  const upstream = await startMcpServer(() => oddServer(), { gate: auth.gate });
  onTestFinished(async () => {
    await upstream.close();
    await auth.close();
  });
  return { auth, upstream };
}

async function signIn(
  address: string,
  more: object = {},
  browse = (url: string): void => void fetch(url),
): Promise<string> {
  const http = openServices();
  const tell = (text: string): void => browse(/https?:\S+/.exec(text)?.[0] ?? '');
  try {
    return (await mcp.spec.signIn?.({ address, http, tell, ...more })) ?? '';
  } finally {
    await http.close();
  }
}

function open(url: string, grant: string, stores = openStores('sqlite::memory:')) {
  const { log, lines } = keptLog();
  const http = openServices();
  const config = addressSchema.parse({ url, protocol: '2025', oauth: { signIn: grant } });
  const server = openToolServer({ name: 'odd', config, tools: { log, http, stores } });
  onTestFinished(async () => {
    await server.close();
    await http.close();
  });
  return { server, lines, stores };
}

test('the gateway uses the server, also when the token ends and after a restart', async () => {
  const { auth, upstream } = await servers();
  const grant = await signIn(upstream.url);
  expect(auth.authorizationRequests[0]?.get('code_challenge_method')).toBe('S256');
  const { server, stores } = open(upstream.url, grant);
  expect((await server.listTools()).map(({ name }) => name)).toContain('echo');
  expect(auth.grants).toEqual(['authorization_code']);
  auth.revoke();
  await server.callTool('echo', { text: 'x' });
  auth.revoke();
  await open(upstream.url, grant, stores).server.callTool('echo', { text: 'x' });
  expect(auth.grants).toEqual(['authorization_code', 'refresh_token', 'refresh_token']);
});

test('sluice login prints a credential that a config takes, and nothing else', async () => {
  const { upstream } = await servers();
  const running = start(process.execPath, [...sluiceProgram, 'login', 'mcp', upstream.url]);
  let printed = '';
  running.child.stderr?.on('data', (text: string) => {
    printed += text;
    const [address] = /https?:\S+\/authorize\S+(?=\s)/.exec(printed) ?? [];
    if (address !== undefined) void fetch(address).catch(() => undefined);
  });
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  expect(readGrant(stdout.trim())).toMatchObject({ url: upstream.url, clientId: 'gateway' });
  expect((await open(upstream.url, stdout.trim()).server.listTools()).length).toBeGreaterThan(0);
});

test('a sign-in that is refused is an error, and so is one at a server that wants none', async () => {
  const { auth, upstream } = await servers();
  auth.refuse();
  await expect(signIn(upstream.url)).rejects.toThrow('refused the sign-in: access_denied');
  const tokenless = await startMcpServer(() => oddServer());
  onTestFinished(() => tokenless.close());
  await expect(signIn(tokenless.url)).rejects.toThrow('does not require a sign-in');
  await expect(signIn('nowhere')).rejects.toThrow('not the URL of an MCP server');
});

test('an authorization server that names another issuer gets no sign-in', async () => {
  for (const issuer of ['https://auth.example.com', undefined]) {
    const { auth, upstream } = await servers(issuer === undefined ? {} : { issuer });
    if (issuer === undefined) await signIn(upstream.url);
    else await expect(signIn(upstream.url)).rejects.toThrow('name another issuer: https://auth.example.com');
    expect(auth.authorizationRequests).toHaveLength(issuer === undefined ? 1 : 0);
  }
});

test('a page that does not know the state of the sign-in is not listened to', async () => {
  const { upstream } = await servers();
  const seen: number[] = [];
  const grant = await signIn(upstream.url, {}, (url) => {
    const back = new URL(new URL(url).searchParams.get('redirect_uri') ?? '');
    back.search = '?code=stolen&state=guessed';
    void fetch(back)
      .then(({ status }) => seen.push(status))
      .then(() => fetch(url));
  });
  expect(seen).toEqual([404]);
  expect(readGrant(grant)).toBeDefined();
});

test('the tokens go to the server for which they are, and to no other one', async () => {
  const { upstream } = await servers();
  const grant = await signIn(upstream.url);
  const other = await startMcpServer(() => oddServer());
  onTestFinished(() => other.close());
  const { server, lines } = open(other.url, grant);
  await expect(server.listTools()).rejects.toMatchObject({ code: 'upstream_error' });
  expect(other.requests).toEqual([]);
  expect(JSON.stringify(lines)).toContain('for another server');
});

test('a config takes nothing but what was printed', () => {
  const config = { url: 'https://mcp.example.com/mcp', oauth: { signIn: 'mcp-nothing' } };
  expect(addressSchema.safeParse(config).error?.message).toContain('sluice login mcp URL');
});

test('sluice login names the plugins that have a sign-in', async () => {
  const { code, stderr } = await sluice(['login', 'cache', 'https://cache.example.com']);
  expect(code).toBe(2);
  expect(stderr).toContain('Use one of: mcp.');
});
