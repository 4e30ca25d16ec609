/** One MCP server as the rest of the gateway sees it: lists of tools, and calls of them. */
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
import { Slots } from './slots.ts';

/** A tool as its server declares it: name, description, inputSchema, annotations and whatever else. */
export type ServedTool = Tool;

/** Content and `isError` of a tool that has run. */
export type ToolResult = CallToolResult;

/** Bounds of one request. */
export interface RequestBounds {
  readonly signal?: AbortSignal | undefined;
  /** Maximum duration in milliseconds, with the wait for a slot and for a connection. Default 60,000. */
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
  /** Tools, from a cache that lives `toolsTtl` and ends with a list_changed. Rejects with GatewayError. */
  listTools(signal?: AbortSignal): Promise<readonly ServedTool[]>;
  /** Runs a tool. Rejects with GatewayError; a tool that failed is a result with `isError`. */
  callTool(name: string, args: JsonObject, options?: ToolCallOptions): Promise<ToolResult>;
  /** Runs any other request on the connected client, within the same bounds. */
  run<T>(job: (client: Client, options: RequestOptions) => Promise<T>, bounds?: RequestBounds): Promise<T>;
  /** Ends the connection, and the process. */
  close(): Promise<void>;
}

/** What a server may ask of its client, and is told to it. Absent members: nothing. */
export interface ToolServerHooks {
  readonly capabilities?: NonNullable<ClientOptions['capabilities']>;
  /** Called with each new client before it connects. */
  prepare?(client: Client): void;
  /** Called when the server's lists may have changed, or its connection has ended. */
  changed?(): void;
}

/** How a server is opened. */
export interface ToolServerSpec extends ToolServerHooks {
  readonly name: string;
  readonly config: ServerConfig;
  readonly tools: ConnectionTools;
  /** Maximum duration of any request in milliseconds. Default 600,000. */
  readonly maxRequestMs?: number;
}

/** Timeouts in a row after which the connection is dropped: the server hangs. */
const maxTimeouts = 3;

const defaults = { timeoutMs: 60_000, maxBytes: 1024 * 1024, maxRequestMs: 600_000 };

/** Opens a server. It connects when it is first asked for something. */
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
  readonly #slots: Slots;
  #listed: ListedTools | undefined;
  #timeouts = 0;

  constructor(spec: ToolServerSpec) {
    this.name = spec.name;
    this.#spec = spec;
    this.#maxRequestMs = spec.maxRequestMs ?? defaults.maxRequestMs;
    this.#slots = new Slots(spec.name, spec.config.concurrency);
    this.#connection = new Connection({
      ...spec,
      maxRequestMs: this.#maxRequestMs,
      capabilities: spec.capabilities ?? {},
      prepare: (client) => this.#prepare(client),
      ended: () => this.#changed(),
    });
  }

  listTools(signal?: AbortSignal): Promise<readonly ServedTool[]> {
    if (this.#listed === undefined || performance.now() > this.#listed.until) {
      // Not ended with its first caller, because others wait for the same list.
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
    { maxBytes = defaults.maxBytes, meta, onProgress, ...bounds }: ToolCallOptions = {},
  ): Promise<ToolResult> {
    const tool = (await this.#listWithin(bounds)).find((one) => one.name === name);
    if (tool === undefined)
      throw new GatewayError(
        'not_found',
        `The MCP server "${this.name}" has no tool "${name.slice(0, 200)}".`,
      );
    // The result is checked by whoever asked for it: schemas of servers are not run here.
    const { outputSchema: _, ...toolDefinition } = tool;
    const result = await this.run(
      (client, options) =>
        client.callTool(
          { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) },
          { ...options, toolDefinition, ...(onProgress === undefined ? {} : { onprogress: onProgress }) },
        ),
      bounds,
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
      release = await this.#slots.take(ends);
      const result = await this.#attempt(job, ends, deadline, signal);
      this.#timeouts = 0;
      return result;
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
    const once = async (): Promise<T> => {
      const client = await unlessAborted(this.#connection.client(), ends);
      const timeout = Math.max(1, Math.ceil(deadline - performance.now()));
      return await job(client, {
        timeout,
        maxTotalTimeout: timeout,
        ...(signal === undefined ? {} : { signal }),
      });
    };
    try {
      return await once();
    } catch (error) {
      const { sdk } = this.#connection;
      if (sdk === undefined || !isLostSession(error, sdk)) throw error;
      await this.#connection.drop();
      return await once();
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #failure(error: unknown, isLate: boolean): GatewayError {
    const failure =
      isLate && !(error instanceof GatewayError)
        ? new GatewayError('upstream_timeout', `The MCP server "${this.name}" did not answer in time.`, {
            origin: 'upstream',
          })
        : serverError(this.name, error, this.#connection.sdk);
    if (failure.code === 'upstream_timeout') {
      this.#timeouts += 1;
      if (this.#timeouts >= maxTimeouts) {
        this.#timeouts = 0;
        this.#spec.tools.log.warn({ server: this.name }, 'an MCP server hangs: its connection is closed');
        void this.#connection.drop();
      }
    } else if (failure.code !== 'upstream_cut') this.#timeouts = 0;
    return failure;
  }

  #prepare(client: Client): void {
    client.setNotificationHandler('notifications/tools/list_changed', () => this.#changed());
    this.#spec.prepare?.(client);
  }

  #changed(): void {
    this.#listed = undefined;
    this.#spec.changed?.();
  }

  /** Reads all pages. Throws when there are more tools, pages or bytes than allowed. */
  async #readTools(client: Client, options: RequestOptions): Promise<readonly ServedTool[]> {
    if (client.getServerCapabilities()?.tools === undefined) return [];
    const { maxTools, maxMessageBytes } = this.#spec.config;
    const tools: ServedTool[] = [];
    let bytes = 0;
    let cursor: string | undefined;
    for (let page = 0; page < 64; page += 1) {
      const read: { tools: Tool[]; nextCursor?: string | undefined } = await client.request(
        { method: 'tools/list', ...(cursor === undefined ? {} : { params: { cursor } }) },
        options,
      );
      for (const tool of read.tools) tools.push(tool);
      bytes += Buffer.byteLength(JSON.stringify(read.tools));
      if (tools.length > maxTools || bytes > maxMessageBytes) break;
      cursor = read.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw new GatewayError('upstream_error', `The MCP server "${this.name}" lists too many tools.`, {
      origin: 'upstream',
    });
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
