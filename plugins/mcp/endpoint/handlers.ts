/** Answers the requests of one client: lists, tools, prompts, resources, completion. */
import type { AuthInfo, Server, ServerContext } from '@modelcontextprotocol/server';
import type { Call, JsonObject, Log } from 'sluice';
import type { McpServerSdk } from './sdk.ts';
import { isDefect, rpcError } from './rpc-error.ts';
import type { RunTool } from './run-tool.ts';
import type { Upstream } from './upstream.ts';
import type { View } from './view.ts';

/** Dependencies of the handlers. */
export interface HandlerParts {
  readonly sdk: McpServerSdk;
  readonly view: View;
  readonly log: Log;
  readonly runTool: RunTool;
  readonly pageSize: number;
  /** Milliseconds that a request other than a call of a tool may take. */
  readonly timeoutMs: number;
  /** Subscribes the client to changes of a resource, or ends that. Absent where clients subscribe by a stream. */
  readonly subscribe?: (upstream: Upstream, uri: string, isOn: boolean) => Promise<void>;
  /** Called around each request that goes to a server, with the context in which that may ask the client. */
  around?<T>(upstream: Upstream, context: ServerContext, run: () => Promise<T>): Promise<T>;
}

/** Key under which a request's call travels with its authentication. */
const callMember = 'sluice.call';

/** Returns the authentication that the SDK hands to handlers. It names nothing of the key. */
export function authInfoOf(call: Call): AuthInfo {
  return { token: '', clientId: '', scopes: [], extra: { [callMember]: call } };
}

/** Returns the call that travels with an authentication. */
export function callOfAuth(authInfo: AuthInfo | undefined): Call {
  const call = authInfo?.extra?.[callMember];
  if (call === undefined) throw new Error('A request of MCP has no call.');
  return call as Call;
}

function callOf({ http }: ServerContext): Call {
  return callOfAuth(http?.authInfo);
}

/** Adds all handlers to a server. */
export function addHandlers(server: Server, parts: HandlerParts): void {
  const { sdk, view, runTool, pageSize, timeoutMs, subscribe } = parts;
  const around = <T>(upstream: Upstream, context: ServerContext, run: () => Promise<T>): Promise<T> =>
    parts.around === undefined ? run() : parts.around(upstream, context, run);
  const invalid = (message: string): Error =>
    new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, message);
  const answering = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const failure = rpcError(error, sdk);
      if (isDefect(error, sdk)) parts.log.error({ error }, 'a request of MCP failed inside the gateway');
      throw failure;
    }
  };
  const bounds = ({ mcpReq }: ServerContext) => ({ signal: mcpReq.signal, timeoutMs });
  const page = <T>(
    entries: readonly T[],
    cursor: string | undefined,
  ): { entries: T[]; nextCursor?: string } => {
    const start = cursor === undefined ? 0 : Number(/^p(\d{1,7})$/.exec(cursor)?.[1] ?? Number.NaN);
    if (!Number.isInteger(start) || (start > 0 && start >= entries.length)) throw invalid('Invalid cursor.');
    const end = start + pageSize;
    return {
      entries: entries.slice(start, end),
      ...(end < entries.length ? { nextCursor: `p${end}` } : {}),
    };
  };

  server.setRequestHandler('tools/list', ({ params }, context) =>
    answering(async () => {
      const { entries: tools, ...rest } = page(await view.tools(context.mcpReq.signal), params?.cursor);
      return { tools, ...rest };
    }),
  );
  server.setRequestHandler('tools/call', ({ params }, context) =>
    answering(async () => {
      const { signal } = context.mcpReq;
      const found = await view.tool(params.name, signal);
      if (found === undefined) throw invalid(`Unknown tool: ${params.name.slice(0, 200)}`);
      return await runTool(callOf(context), {
        ...found,
        exposed: params.name,
        args: (params.arguments ?? {}) as JsonObject,
        context,
        around: (run) => around(found.upstream, context, run),
      });
    }),
  );
  server.setRequestHandler('prompts/list', ({ params }) =>
    answering(async () => {
      const { entries: prompts, ...rest } = page(await view.prompts(), params?.cursor);
      return { prompts, ...rest };
    }),
  );
  server.setRequestHandler('prompts/get', ({ params }, context) =>
    answering(async () => {
      const found = await view.prompt(params.name);
      if (found === undefined) throw invalid(`Unknown prompt: ${params.name.slice(0, 200)}`);
      const { upstream, prompt } = found;
      const named = { name: prompt.name, ...(params.arguments && { arguments: params.arguments }) };
      return await around(upstream, context, () =>
        upstream.server.run(
          (client, options) => client.request({ method: 'prompts/get', params: named }, options),
          bounds(context),
        ),
      );
    }),
  );
  server.setRequestHandler('resources/list', ({ params }) =>
    answering(async () => {
      const { entries: resources, ...rest } = page(await view.resources(), params?.cursor);
      return { resources, ...rest };
    }),
  );
  server.setRequestHandler('resources/templates/list', ({ params }) =>
    answering(async () => {
      const { entries: resourceTemplates, ...rest } = page(await view.templates(), params?.cursor);
      return { resourceTemplates, ...rest };
    }),
  );
  const owner = async (uri: string): Promise<Upstream> => {
    const upstream = await view.ownerOf(uri);
    if (upstream === undefined) throw new sdk.ResourceNotFoundError(uri.slice(0, 500));
    return upstream;
  };
  server.setRequestHandler('resources/read', ({ params: { uri } }, context) =>
    answering(async () => {
      const upstream = await owner(uri);
      return await around(upstream, context, () =>
        upstream.server.run(
          (client, options) => client.request({ method: 'resources/read', params: { uri } }, options),
          bounds(context),
        ),
      );
    }),
  );
  if (subscribe !== undefined) {
    server.setRequestHandler('resources/subscribe', ({ params: { uri } }) =>
      answering(async () => {
        await subscribe(await owner(uri), uri, true);
        return {};
      }),
    );
    server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) =>
      answering(async () => {
        await subscribe(await owner(uri), uri, false);
        return {};
      }),
    );
  }
  server.setRequestHandler('completion/complete', ({ params }, context) =>
    answering(async () => {
      const { ref } = params;
      const found = ref.type === 'ref/prompt' ? await view.prompt(ref.name) : undefined;
      const upstream = ref.type === 'ref/prompt' ? found?.upstream : await view.templateOwner(ref.uri);
      if (upstream === undefined) throw invalid('Nothing of that name can be completed.');
      const named = found === undefined ? ref : { ...ref, name: found.prompt.name };
      const completed = { ...params, ref: named } as typeof params;
      return await upstream.server.run(
        (client, options) =>
          client.getServerCapabilities()?.completions === undefined
            ? Promise.resolve({ completion: { values: [] } })
            : client.request({ method: 'completion/complete', params: completed }, options),
        bounds(context),
      );
    }),
  );
}

/** Capabilities of the endpoint. Its lists are empty where no server has entries. */
export function capabilitiesOf(hasSessions: boolean) {
  return {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    ...(hasSessions ? { logging: {} } : {}),
  };
}
