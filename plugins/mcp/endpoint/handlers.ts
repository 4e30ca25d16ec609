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
  /** Timeout in milliseconds of a request that is not a tool call. */
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
  const shared = new HandlerKit(parts);
  addTools(server, parts, shared);
  addPrompts(server, parts, shared);
  addResources(server, parts, shared);
  addCompletion(server, parts, shared);
}

function addTools(server: Server, { view, runTool }: HandlerParts, shared: HandlerKit): void {
  server.setRequestHandler('tools/list', ({ params }, context) =>
    shared.answering(async () => {
      const { entries: tools, ...rest } = shared.page(
        await view.tools(context.mcpReq.signal),
        params?.cursor,
      );
      return { tools, ...rest };
    }),
  );
  server.setRequestHandler('tools/call', ({ params }, context) =>
    shared.answering(async () => {
      const { signal } = context.mcpReq;
      const found = await view.tool(params.name, signal);
      if (found === undefined) throw shared.invalid(`Unknown tool: ${params.name.slice(0, 200)}`);
      return await runTool(callOf(context), {
        ...found,
        exposed: params.name,
        args: (params.arguments ?? {}) as JsonObject,
        context,
        around: (run) => shared.around(found.upstream, context, run),
      });
    }),
  );
}

function addPrompts(server: Server, { view }: HandlerParts, shared: HandlerKit): void {
  server.setRequestHandler('prompts/list', ({ params }) =>
    shared.answering(async () => {
      const { entries: prompts, ...rest } = shared.page(await view.prompts(), params?.cursor);
      return { prompts, ...rest };
    }),
  );
  server.setRequestHandler('prompts/get', ({ params }, context) =>
    shared.answering(async () => {
      const found = await view.prompt(params.name);
      if (found === undefined) throw shared.invalid(`Unknown prompt: ${params.name.slice(0, 200)}`);
      const { upstream, prompt } = found;
      const named = { name: prompt.name, ...(params.arguments && { arguments: params.arguments }) };
      return await shared.around(upstream, context, () =>
        upstream.server.run(
          (client, options) => client.request({ method: 'prompts/get', params: named }, options),
          shared.bounds(context),
        ),
      );
    }),
  );
}

function addResources(server: Server, { view, subscribe }: HandlerParts, shared: HandlerKit): void {
  server.setRequestHandler('resources/list', ({ params }) =>
    shared.answering(async () => {
      const { entries: resources, ...rest } = shared.page(await view.resources(), params?.cursor);
      return { resources, ...rest };
    }),
  );
  server.setRequestHandler('resources/templates/list', ({ params }) =>
    shared.answering(async () => {
      const { entries: resourceTemplates, ...rest } = shared.page(await view.templates(), params?.cursor);
      return { resourceTemplates, ...rest };
    }),
  );
  server.setRequestHandler('resources/read', ({ params: { uri } }, context) =>
    shared.answering(async () => {
      const upstream = await shared.owner(uri);
      return await shared.around(upstream, context, () =>
        upstream.server.run(
          (client, options) => client.request({ method: 'resources/read', params: { uri } }, options),
          shared.bounds(context),
        ),
      );
    }),
  );
  if (subscribe !== undefined) {
    server.setRequestHandler('resources/subscribe', ({ params: { uri } }) =>
      shared.answering(async () => {
        await subscribe(await shared.owner(uri), uri, true);
        return {};
      }),
    );
    server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) =>
      shared.answering(async () => {
        await subscribe(await shared.owner(uri), uri, false);
        return {};
      }),
    );
  }
}

function addCompletion(server: Server, { view }: HandlerParts, shared: HandlerKit): void {
  server.setRequestHandler('completion/complete', ({ params }, context) =>
    shared.answering(async () => {
      const { ref } = params;
      const found = ref.type === 'ref/prompt' ? await view.prompt(ref.name) : undefined;
      const upstream = ref.type === 'ref/prompt' ? found?.upstream : await view.templateOwner(ref.uri);
      if (upstream === undefined) throw shared.invalid('Nothing of that name can be completed.');
      const named = found === undefined ? ref : { ...ref, name: found.prompt.name };
      const completed = { ...params, ref: named } as typeof params;
      return await upstream.server.run(
        (client, options) =>
          client.getServerCapabilities()?.completions === undefined
            ? Promise.resolve({ completion: { values: [] } })
            : client.request({ method: 'completion/complete', params: completed }, options),
        shared.bounds(context),
      );
    }),
  );
}

/** Parts of handlers that several of them need. */
class HandlerKit {
  readonly #parts: HandlerParts;

  constructor(parts: HandlerParts) {
    this.#parts = parts;
  }

  around<T>(upstream: Upstream, context: ServerContext, run: () => Promise<T>): Promise<T> {
    return this.#parts.around === undefined ? run() : this.#parts.around(upstream, context, run);
  }

  invalid(message: string): Error {
    return new this.#parts.sdk.ProtocolError(this.#parts.sdk.ProtocolErrorCode.InvalidParams, message);
  }

  async answering<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failure = rpcError(error, this.#parts.sdk);
      if (isDefect(error, this.#parts.sdk))
        this.#parts.log.error({ error }, 'a request of MCP failed inside the gateway');
      throw failure;
    }
  }

  bounds({ mcpReq }: ServerContext) {
    return { signal: mcpReq.signal, timeoutMs: this.#parts.timeoutMs };
  }

  page<T>(entries: readonly T[], cursor: string | undefined): { entries: T[]; nextCursor?: string } {
    const start = cursor === undefined ? 0 : Number(/^p(\d{1,7})$/.exec(cursor)?.[1] ?? Number.NaN);
    if (!Number.isInteger(start) || (start > 0 && start >= entries.length))
      throw this.invalid('Invalid cursor.');
    const end = start + this.#parts.pageSize;
    return {
      entries: entries.slice(start, end),
      ...(end < entries.length ? { nextCursor: `p${end}` } : {}),
    };
  }

  async owner(uri: string): Promise<Upstream> {
    const upstream = await this.#parts.view.ownerOf(uri);
    if (upstream === undefined) throw new this.#parts.sdk.ResourceNotFoundError(uri.slice(0, 500));
    return upstream;
  }
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
