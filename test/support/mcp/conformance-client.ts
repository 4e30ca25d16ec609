/* The gateway as a client of the MCP servers of the conformance suite. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import demo from '../../../channels/demo/index.ts';
import { openServices } from '../../../core/upstream/services.ts';
import mcp from '../../../plugins/mcp/index.ts';
import { startGateway } from '../gateway.ts';

type Server = NonNullable<NonNullable<Parameters<typeof mcp>[0]>['servers']>[string];

/** A scenario of the suite. */
export interface Scenario {
  readonly name: string;
  /** Address of the suite's MCP server. */
  readonly url: string;
  /** Credentials that the suite gives to clients. */
  readonly context: Readonly<Record<string, string>>;
}

/**
 * Starts a gateway with the server of a scenario in its config, signs in where the scenario wants a person to, and uses all tools of the
 * server through the gateway's endpoint.
 */
export async function playScenario(scenario: Scenario): Promise<void> {
  const server = async (scope?: string): Promise<Server> => ({
    url: scenario.url,
    protocol: '2025',
    connection: 'session',
    oauth: await oauth(scenario, scope),
  });
  const scope = await useTools(scenario, await server());
  if (scope === undefined) return;
  const missing = await useTools(scenario, await server(scope));
  if (missing !== undefined) throw new Error(`The scope "${missing}" is still missing.`);
}

/** Operators know the authorization server of their MCP server; the suite starts one on a port of its own. */
async function issuerOf({ url }: Scenario): Promise<string> {
  const { origin, pathname } = new URL(url);
  const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers: servers } = (await metadata.json()) as { authorization_servers: string[] };
  return servers[0] ?? origin;
}

/** Does what `sluice login mcp URL` does, with a person who agrees to everything. */
async function signIn({ name, url, context }: Scenario, scope?: string): Promise<string> {
  const http = openServices();
  const browse = (text: string): void => void fetch(/https?:\S+/.exec(text)?.[0] ?? '');
  const clientMetadata = 'https://conformance-test.local/client-metadata.json';
  try {
    const grant = await mcp.spec.signIn?.({
      address: url,
      scope,
      clientId: context['client_id'],
      clientSecret: context['client_secret'],
      ...(name === 'auth/basic-cimd' ? { clientMetadata } : {}),
      http,
      tell: browse,
    });
    return grant ?? '';
  } finally {
    await http.close();
  }
}

async function oauth(scenario: Scenario, scope?: string): Promise<Extract<Server, { url: string }>['oauth']> {
  const { name, context } = scenario;
  const { client_id: clientId = '', client_secret: clientSecret, private_key_pem: privateKey } = context;
  if (!name.startsWith('auth/')) return undefined;
  if (!name.startsWith('auth/client-credentials')) return { signIn: await signIn(scenario, scope) };
  const issuer = await issuerOf(scenario);
  return privateKey === undefined
    ? { clientId, clientSecret, issuer }
    : { clientId, privateKey, algorithm: 'ES256', issuer };
}

/** Uses all tools once. Returns the scope that the gateway's token lacks, or undefined. */
async function useTools({ name: scenario }: Scenario, server: Server): Promise<string | undefined> {
  const gateway = await startGateway({ channels: [demo()], plugins: [mcp({ servers: { suite: server } })] });
  const client = new Client(
    { name: 'suite', version: '1' },
    { capabilities: { elicitation: { form: { applyDefaults: true } } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${gateway.key}` } },
  });
  try {
    await client.connect(transport);
    const { tools } = await client.listTools();
    for (const { name } of tools)
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as a person would
      await client.callTool({ name, arguments: scenario === 'tools_call' ? { a: 5, b: 3 } : {} });
    const scope = scopeOf(JSON.stringify(gateway.lines));
    if (tools.length > 0 || !scenario.startsWith('auth/') || scope !== undefined) return scope;
    throw new Error(`The gateway has no tools: ${JSON.stringify(gateway.lines.slice(-5))}`);
  } catch (error) {
    const scope = scopeOf(String(error));
    if (scope === undefined) throw error;
    return scope;
  } finally {
    await client.close();
    await gateway.close();
  }
}

function scopeOf(text: string): string | undefined {
  return /needs the scope \\?"([^"\\]+)/.exec(text)?.[1];
}
