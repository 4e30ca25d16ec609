/* The gateway's client side, as the conformance suite starts it: `node conformance-client.ts URL`, with the scenario in the environment. */
import { openServices } from '../../../core/upstream/services.ts';
import { addressSchema, openToolServer } from '../../../plugins/mcp/servers/index.ts';

/** Operators know the authorization server of their MCP server; the suite starts one on a port of its own. */
async function issuerOf(server: string): Promise<string> {
  const { origin, pathname } = new URL(server);
  const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers: servers } = (await metadata.json()) as { authorization_servers: string[] };
  return servers[0] ?? origin;
}

const url = process.argv.at(-1) ?? '';
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Record<string, string>;
const http = openServices();
const kept = new Map<string, unknown>();
const log = {
  debug: console.error,
  info: console.error,
  warn: console.error,
  error: console.error,
};
const oauth = scenario.startsWith('auth/')
  ? {
      oauth: {
        clientId: context['client_id'] ?? '',
        clientSecret: context['client_secret'] ?? '',
        issuer: await issuerOf(url),
      },
    }
  : {};
const server = openToolServer({
  name: 'suite',
  config: addressSchema.parse({ url, protocol: '2025', ...oauth }),
  tools: {
    log: log as never,
    http,
    stores: {
      add: async () => true,
      namespace: () => ({
        get: async (key: string) => kept.get(key),
        set: async (key: string, value: unknown) => kept.set(key, value),
        delete: async (key: string) => kept.delete(key),
      }),
    } as never,
  },
});
const tools = await server.listTools();
const args = scenario === 'tools_call' ? { a: 5, b: 3 } : {};
for (const { name } of tools) console.error(JSON.stringify(await server.callTool(name, args)));
await server.close();
await http.close();
