/** One MCP server as the rest of the gateway uses it: lists of tools, and tool calls. */
import type {
  CallToolResult,
  Client,
  ClientOptions,
  RequestOptions,
  Tool,
} from '@modelcontextprotocol/client';
import { GatewayError, type JsonObject } from 'sluice';
import { Connection, type ConnectionTools } from './connection.ts';
import type { ServerConfig } from './config.ts';
import { isLostSession, serverError } from './errors.ts';
import { readPages } from './pages.ts';
import { Permits } from './permits.ts';
import { RetiringClients } from './retiring-clients.ts';

/** A tool as its server declares it: name, description, inputSchema, annotations and whatever else. */
export type ServedTool = Tool;

/** Content and `isError` of a tool that has run. */
export type ToolResult = CallToolResult;

/** Bounds of one request. */
export interface RequestBounds {
  readonly signal?: AbortSignal | undefined;
  /** Maximum duration in milliseconds, with the wait for a permit and for a connection. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** Bounds of one call of a tool. */
export interface ToolCallOptions extends RequestBounds {
  /** Maximum number of bytes of the result as JSON. Default 1 MiB. */
  readonly maxBytes?: number | undefined;
  /** Passed on to the server as the call's `_meta`. */
  readonly meta?: JsonObject | undefined;
  /** Receives the progress that the server reports. */
  readonly onProgress?: RequestOptions['onprogress'] | undefined;
}

/** One MCP server that the operator configured, or that a client named. */
export interface ToolServer {
  readonly name: string;
  /** Returns the tools, from a cache that lives `toolsTtl` and ends with a list_changed. Rejects with GatewayError. */
  listTools(signal?: AbortSignal): Promise<readonly ServedTool[]>;
  /** Runs a tool. Rejects with GatewayError; a tool that failed is a result with `isError`. */
  callTool(name: string, args: JsonObject, options?: ToolCallOptions): Promise<ToolResult>;
  /** Runs any other request on the connected client, within the same bounds. */
  run<T>(job: (client: Client, options: RequestOptions) => Promise<T>, bounds?: RequestBounds): Promise<T>;
  /** Ends the connection, and the process. */
  close(): Promise<void>;
}

/** Handlers of messages from a server. A server may only send requests that `capabilities` allows. */
export interface ToolServerHooks {
  readonly capabilities?: NonNullable<ClientOptions['capabilities']>;
  /** Called with each new client before it connects. */
  prepare?(client: Client): void;
  /** Called when the server's tools may have changed. */
  changed?(): void;
  /** Called when an open connection has ended: all lists may have changed, and subscriptions are gone. */
  ended?(): void;
}

/** Options of {@link openToolServer}. */
export interface ToolServerSpec extends ToolServerHooks {
  readonly name: string;
  readonly config: ServerConfig;
  readonly tools: ConnectionTools;
  /** Maximum duration of any request in milliseconds. Default 600,000. */
  readonly maxRequestMs?: number;
}

/** Number of requests in a row that a connected server did not answer in time, after which its connection is closed. */
const maxTimeouts = 3;

const defaults = { timeoutMs: 60_000, maxBytes: 1024 * 1024, maxRequestMs: 600_000 };

/** Opens a server. Its first request connects to it. */
export function openToolServer(spec: ToolServerSpec): ToolServer {
  return new ConnectedServer(spec);
}

interface ListedTools {
  readonly until: number;
  readonly tools: Promise<readonly ServedTool[]>;
}

class ConnectedServer implements ToolServer {
  readonly name: string;
  readonly #spec: ToolServerSpec;
  readonly #maxRequestMs: number;
  readonly #connection: Connection;
  readonly #permits: Permits;
  #listed: ListedTools | undefined;
  #timeouts = 0;
  readonly #clients = new RetiringClients();

  constructor(spec: ToolServerSpec) {
    this.name = spec.name;
    this.#spec = spec;
    this.#maxRequestMs = spec.maxRequestMs ?? defaults.maxRequestMs;
    this.#permits = new Permits(spec.name, spec.config.concurrency);
    this.#connection = new Connection({
      ...spec,
      maxRequestMs: this.#maxRequestMs,
      capabilities: spec.capabilities ?? {},
      prepare: (client) => this.#prepare(client),
      ended: () => {
        this.#changed();
        spec.ended?.();
      },
    });
  }

  listTools(signal?: AbortSignal): Promise<readonly ServedTool[]> {
    if (this.#listed === undefined || performance.now() > this.#listed.until) {
      // Does not end with its first caller, because others wait for the same list.
      const listed = {
        until: performance.now() + this.#spec.config.toolsTtl * 1000,
        tools: this.run((client, options) => this.#readTools(client, options)),
      };
      this.#listed = listed;
      listed.tools.catch(() => {
        if (this.#listed === listed) this.#listed = undefined;
      });
    }
    return signal === undefined ? this.#listed.tools : unlessAborted(this.#listed.tools, signal);
  }

  async callTool(
    name: string,
    args: JsonObject,
    {
      maxBytes = defaults.maxBytes,
      meta,
      onProgress,
      signal,
      timeoutMs = defaults.timeoutMs,
    }: ToolCallOptions = {},
  ): Promise<ToolResult> {
    const deadline = performance.now() + timeoutMs;
    const tool = (await this.#listWithin({ signal, timeoutMs })).find((one) => one.name === name);
    if (tool === undefined)
      throw new GatewayError(
        'not_found',
        `The MCP server "${this.name}" has no tool "${name.slice(0, 200)}".`,
      );
    // The caller validates the result, because schemas of servers are not compiled here.
    const { outputSchema: _, ...toolDefinition } = tool;
    const result = await this.run(
      (client, options) =>
        client.callTool(
          { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) },
          { ...options, toolDefinition, ...(onProgress === undefined ? {} : { onprogress: onProgress }) },
        ),
      { signal, timeoutMs: Math.max(1, Math.ceil(deadline - performance.now())) },
    );
    const bytes = Buffer.byteLength(JSON.stringify(result));
    if (bytes > maxBytes)
      throw new GatewayError(
        'upstream_error',
        `The result of the tool "${name}" has ${bytes} bytes; at most ${maxBytes} are allowed.`,
        { origin: 'upstream', retryable: false },
      );
    return result;
  }

  /** Returns the list, or rejects when the time of the call that needs it is over. */
  async #listWithin({
    signal,
    timeoutMs = defaults.timeoutMs,
  }: RequestBounds): Promise<readonly ServedTool[]> {
    const late = AbortSignal.timeout(timeoutMs);
    try {
      return await this.listTools(signal === undefined ? late : AbortSignal.any([signal, late]));
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#failure(error, late.aborted);
    }
  }

  async run<T>(
    job: (client: Client, options: RequestOptions) => Promise<T>,
    { signal, timeoutMs = defaults.timeoutMs }: RequestBounds = {},
  ): Promise<T> {
    const limit = Math.min(timeoutMs, this.#maxRequestMs);
    const deadline = performance.now() + limit;
    const late = AbortSignal.timeout(limit);
    const ends = signal === undefined ? late : AbortSignal.any([signal, late]);
    let release: (() => void) | undefined;
    try {
      release = await this.#permits.acquire(ends);
      return await this.#attempt(job, ends, deadline, signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#failure(error, late.aborted);
    } finally {
      release?.();
    }
  }

  async #attempt<T>(
    job: (client: Client, options: RequestOptions) => Promise<T>,
    ends: AbortSignal,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const send = async (client: Client): Promise<T> => {
      const timeout = Math.max(1, Math.ceil(deadline - performance.now()));
      const bounds = { timeout, maxTotalTimeout: timeout, ...(signal === undefined ? {} : { signal }) };
      this.#clients.begin(client);
      try {
        const result = await job(client, bounds);
        this.#timeouts = 0;
        return result;
      } catch (error) {
        if (signal?.aborted !== true) this.#count(error, client);
        const { sdk } = this.#connection;
        if (sdk !== undefined && isLostSession(error, sdk) && this.#connection.retire(client))
          this.#clients.retire(client);
        throw error;
      } finally {
        this.#clients.end(client);
      }
    };
    const client = await unlessAborted(this.#connection.client(), ends);
    try {
      return await send(client);
    } catch (error) {
      const { sdk } = this.#connection;
      if (sdk === undefined || !isLostSession(error, sdk)) throw error;
    }
    return await send(await unlessAborted(this.#connection.client(), ends));
  }

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#clients.close()]);
  }

  #failure(error: unknown, isLate: boolean): GatewayError {
    return isLate && !(error instanceof GatewayError)
      ? new GatewayError('upstream_timeout', `The MCP server "${this.name}" did not respond in time.`, {
          origin: 'upstream',
        })
      : serverError(this.name, error, this.#connection.sdk);
  }

  /** Counts a request that failed at a connected server. Closes the connection after too many timeouts in a row. */
  #count(error: unknown, client: Client): void {
    const { code } = serverError(this.name, error, this.#connection.sdk);
    if (code === 'upstream_timeout') this.#timeouts += 1;
    else if (code !== 'upstream_cut') this.#timeouts = 0;
    if (this.#timeouts < maxTimeouts) return;
    this.#timeouts = 0;
    this.#spec.tools.log.warn({ server: this.name }, 'an MCP server hangs: its connection is closed');
    void this.#connection.drop(client);
  }

  #prepare(client: Client): void {
    client.setNotificationHandler('notifications/tools/list_changed', () => this.#changed());
    this.#spec.prepare?.(client);
  }

  #changed(): void {
    this.#listed = undefined;
    this.#spec.changed?.();
  }

  async #readTools(client: Client, options: RequestOptions): Promise<readonly ServedTool[]> {
    if (client.getServerCapabilities()?.tools === undefined) return [];
    const { maxTools: maxEntries, maxMessageBytes: maxBytes } = this.#spec.config;
    return await readPages(
      async (cursor, bounds) => {
        const { tools, nextCursor } = await client.request({ method: 'tools/list', ...cursor }, bounds);
        return { entries: tools, nextCursor };
      },
      options,
      { name: this.name, maxEntries, maxBytes },
    );
  }
}

/** Settles as the promise does, or rejects when the signal aborts. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
