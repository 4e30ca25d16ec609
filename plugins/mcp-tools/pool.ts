/** Connections to MCP servers: those of the operator, which are kept, and those of clients, which end with their call. */
import { GatewayError, type Call, type PluginTools } from 'sluice';
import {
  addressSchema,
  openToolServer,
  type ConnectionTools,
  type ToolServer,
} from '../mcp/servers/index.ts';
import type { Options } from './options.ts';
import { wrong } from './json.ts';

/** A server as a client names it. */
export interface ClientServer {
  readonly label: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly at: string;
}

/** Opens servers. */
export class ServerPool {
  readonly #options: Options;
  readonly #tools: PluginTools;
  readonly #open = new Map<string, ToolServer>();

  constructor(options: Options, tools: PluginTools) {
    this.#options = options;
    this.#tools = tools;
  }

  /** Returns a server of the operator. */
  named(name: string): ToolServer {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const config = this.#options.servers[name];
    if (config === undefined) throw new GatewayError('not_found', `There is no MCP server "${name}".`);
    const server = openToolServer({ name, config, tools: this.#tools });
    this.#open.set(name, server);
    return server;
  }

  /** Returns a server of a client, which is closed with the call. Throws 400 for a URL that cannot be one. */
  ofClient(call: Call, { label, url, headers, at }: ClientServer): ToolServer {
    const config = addressSchema.safeParse({ url, headers, connectTimeout: this.#options.toolTimeout });
    if (!config.success) throw wrong(`${at}: the URL of the MCP server`, 'an http or https URL');
    const server = openToolServer({
      name: label,
      config: config.data,
      tools: guarded(this.#tools),
      maxRequestMs: Math.round(this.#options.toolTimeout * 1000),
    });
    call.onEnd(() => void server.close().catch(() => undefined));
    return server;
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((server) => server.close()));
  }
}

/** Returns the tools for servers of clients: public addresses alone, and no line for each connection. */
function guarded({ fetchClientUrl, log, stores }: PluginTools): ConnectionTools {
  return {
    stores,
    log: {
      debug: (fields, sentence) => log.debug(fields, sentence),
      info: (fields, sentence) => log.debug(fields, sentence),
      warn: (fields, sentence) => log.info(fields, sentence),
      error: (fields, sentence) => log.error(fields, sentence),
    },
    http: {
      async open({ url, method, headers, body, signal, timeout }) {
        const response = await fetchClientUrl(url, {
          maxBytes: Number.MAX_SAFE_INTEGER,
          ...(method === undefined ? {} : { method }),
          ...(headers === undefined ? {} : { headers }),
          ...(body === undefined ? {} : { body }),
          ...(signal === undefined ? {} : { signal }),
          ...(timeout === undefined ? {} : { timeoutMs: timeout }),
        });
        const reader = response.body?.getReader();
        const close = (): void => void reader?.cancel().catch(() => undefined);
        return {
          status: response.status,
          headers: Object.fromEntries(response.headers),
          body: chunksOf(reader, close),
          close,
        };
      },
    },
  };
}

async function* chunksOf(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  close: () => void,
): AsyncGenerator<Buffer> {
  try {
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read())
      yield Buffer.from(read.value);
  } finally {
    close();
  }
}
