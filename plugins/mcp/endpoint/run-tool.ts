/** Runs a tool as a call of its own: limited, recorded, charged. */
import type { CallToolResult, Tool } from '@modelcontextprotocol/client';
import type { ServerContext } from '@modelcontextprotocol/server';
import {
  caller,
  GatewayError,
  type Call,
  type JsonObject,
  type PluginCounter,
  type PluginTools,
} from 'sluice';
import type { McpOptions } from '../options.ts';
import type { Minutes } from './minutes.ts';
import type { Upstream } from './upstream.ts';

/** Call of a tool. */
export interface ToolRequest {
  readonly upstream: Upstream;
  readonly tool: Tool;
  /** The name that the caller used. */
  readonly exposed: string;
  readonly args: JsonObject;
  readonly context: ServerContext;
  /** Runs the request to the server in the context in which that may ask the client. */
  around<T>(run: () => Promise<T>): Promise<T>;
}

/** Runs a tool on behalf of a call. Rejects with GatewayError. */
export type RunTool = (call: Call, request: ToolRequest) => Promise<CallToolResult>;

/** Binds runs to the options. */
export function toolRunner(
  { chargeMicroDollars, limits }: McpOptions,
  tools: Pick<PluginTools, 'runTool'>,
  minutes: Minutes | undefined,
  calls: PluginCounter,
): RunTool {
  return async (call, { upstream, tool, exposed, args, context, around }) => {
    const { config, name: server } = upstream;
    const microDollars = config.chargeMicroDollars ?? chargeMicroDollars;
    const { signal, _meta: meta } = context.mcpReq;
    const progressToken = meta?.progressToken;
    let outcome = 'refused';
    try {
      const waitSeconds = minutes?.take(call.get(caller)?.id ?? '') ?? 0;
      if (waitSeconds > 0)
        throw new GatewayError('rate_limit_exceeded', 'Too many calls of tools in this minute.', {
          retryAfter: waitSeconds,
        });
      return await tools.runTool(call, { name: exposed, microDollars }, async (own) => {
        outcome = 'failed';
        const result = await unlessCancelled(signal, () =>
          around(() =>
            upstream.server.callTool(tool.name, args, {
              signal: AbortSignal.any([signal, own.signal]),
              timeoutMs: (config.seconds ?? limits.seconds) * 1000,
              maxBytes: limits.resultBytes,
              meta: forwardedMeta(meta),
              onProgress:
                progressToken === undefined
                  ? undefined
                  : (progress) =>
                      void context.mcpReq
                        .notify({ method: 'notifications/progress', params: { ...progress, progressToken } })
                        .catch(() => undefined),
            }),
          ),
        );
        outcome = result.isError === true ? 'error' : 'ok';
        return result;
      });
    } finally {
      calls.add({ server, outcome });
    }
  };
}

/** Returns what a client adds to a request for the server: not what belongs to the connection. */
function forwardedMeta(meta: Readonly<Record<string, unknown>> | undefined): JsonObject | undefined {
  if (meta === undefined) return undefined;
  const own = Object.entries(meta).filter(
    ([name]) => name !== 'progressToken' && !name.startsWith('io.modelcontextprotocol/'),
  );
  return own.length === 0 ? undefined : (Object.fromEntries(own) as JsonObject);
}

/** Runs a request. Rejects with a GatewayError where the client has cancelled it. */
async function unlessCancelled<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new GatewayError('client_closed_request', 'The client cancelled the request.');
  }
}
