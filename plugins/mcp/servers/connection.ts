/** One connection to an MCP server: opened when it is needed, and again after a failure. */
import type { Client, ClientOptions, Transport } from '@modelcontextprotocol/client';
import { GatewayError, type Log, type Services } from 'sluice';
import { boundedFetch } from './fetch.ts';
import type { AddressConfig, ServerConfig } from './config.ts';
import { isGrantFor } from './grant.ts';
import { oauthTokens, tokenSecretOf } from './oauth.ts';
import { loadSdk, type McpSdk } from './sdk.ts';
import { ProcessTransport } from './stdio.ts';
import { openTokenVault, type VaultStores } from './token-vault.ts';

/** Initial and maximum delay in milliseconds before another attempt after consecutive failures. */
const backoff = { firstMs: 500, mostMs: 60_000 };

/** Milliseconds that a server has to end its session before the connection is closed. */
const sessionEndMs = 2_000;

/** Maximum number of lines of standard error that are logged in a minute. */
const loggedLines = 60;

/** Services of the gateway that connections use. */
export interface ConnectionTools {
  readonly log: Log;
  /** Opens requests to servers. For addresses that clients gave it must connect to public ones alone. */
  readonly http: Pick<Services, 'open'>;
  readonly stores: VaultStores;
}

/** Options of one connection. */
export interface ConnectionSpec {
  readonly name: string;
  readonly config: ServerConfig;
  readonly tools: ConnectionTools;
  /** Maximum duration of one request in milliseconds. */
  readonly maxRequestMs: number;
  /** Capabilities that the gateway declares to the server. */
  readonly capabilities: NonNullable<ClientOptions['capabilities']>;
  /** Called with each new client before it connects, to add handlers. */
  prepare(client: Client): void;
  /** Called when an open connection has ended. */
  ended(): void;
}

/** Manages one client. */
export class Connection {
  readonly #spec: ConnectionSpec;
  #opening: Promise<Client> | undefined;
  /** The client that is connected now. */
  #client: Client | undefined;
  #sdk: McpSdk | undefined;
  #failures = 0;
  #notBefore = 0;
  #isClosed = false;
  /** Lines of standard error in the present minute. */
  #lines = { since: 0, count: 0 };

  constructor(spec: ConnectionSpec) {
    this.#spec = spec;
  }

  /** The SDK, once a connection was tried. */
  get sdk(): McpSdk | undefined {
    return this.#sdk;
  }

  /** Returns the connected client. Rejects with GatewayError, at once while the server's last failure is recent. */
  client(): Promise<Client> {
    if (this.#isClosed) return Promise.reject(this.#unavailable('The gateway is closing.'));
    if (this.#opening !== undefined) return this.#opening;
    const waitMs = this.#notBefore - performance.now();
    if (waitMs > 0) return Promise.reject(this.#unavailable(undefined, waitMs));
    const opening = this.#open();
    this.#opening = opening;
    opening.catch((error: unknown) => this.#failed(opening, error));
    return opening;
  }

  /** Closes the connection of this client unless another has replaced it. The next request opens another. */
  async drop(client: Client): Promise<void> {
    if (this.retire(client)) await client.close().catch(() => undefined);
  }

  /** Uses this client for no further request. Returns false where it was not the present one. The caller closes it. */
  retire(client: Client): boolean {
    if (!this.#forget(client)) return false;
    this.#spec.ended();
    return true;
  }

  /** Ends the connection for good, and the session at the server with it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const opening = this.#opening;
    this.#opening = this.#client = undefined;
    const client = await opening?.catch(() => undefined);
    if (client !== undefined) await endClient(client);
  }

  async #open(): Promise<Client> {
    const { name, tools } = this.#spec;
    const sdk = (this.#sdk = await loadSdk());
    const client = await this.#negotiate(sdk);
    this.#failures = 0;
    tools.log.info(
      { server: name, version: client.getNegotiatedProtocolVersion() },
      'connected to an MCP server',
    );
    return client;
  }

  async #negotiate(sdk: McpSdk): Promise<Client> {
    const { config } = this.#spec;
    try {
      return await this.#connect(sdk, config.protocol);
    } catch (error) {
      // Servers that end at whatever comes before `initialize`.
      if (
        config.protocol === 'auto' &&
        error instanceof sdk.SdkError &&
        error.code === 'ERA_NEGOTIATION_FAILED'
      )
        return await this.#connect(sdk, '2025');
      throw error;
    }
  }

  async #connect(sdk: McpSdk, protocol: ServerConfig['protocol']): Promise<Client> {
    const { config, capabilities } = this.#spec;
    const mode = { '2025': 'legacy', '2026': { pin: '2026-07-28' }, auto: 'auto' } as const;
    const client = new sdk.Client(
      { name: 'sluice', version: '1' },
      { capabilities, versionNegotiation: { mode: mode[protocol] }, listMaxPages: 1 },
    );
    this.#spec.prepare(client);
    Object.assign(client, {
      onerror: (error: Error) =>
        this.#spec.tools.log.debug({ server: this.#spec.name, error }, 'an MCP connection reports an error'),
    });
    const timeout = Math.round(config.connectTimeout * 1000);
    try {
      await client.connect(this.#transport(sdk), { timeout, maxTotalTimeout: timeout });
    } catch (error) {
      await client.close().catch(() => undefined);
      throw error;
    }
    if (this.#isClosed) {
      await endClient(client);
      throw this.#unavailable('The gateway is closing.');
    }
    this.#client = client;
    Object.assign(client, { onclose: () => this.#lost(client) });
    return client;
  }

  #transport(sdk: McpSdk): Transport {
    const { config } = this.#spec;
    if ('command' in config)
      return new ProcessTransport(config, { sdk, stderr: (line) => this.#complaint(line) });
    return this.#httpTransport(sdk, config);
  }

  #httpTransport(sdk: McpSdk, { url, headers, oauth, maxMessageBytes }: AddressConfig): Transport {
    const { tools, maxRequestMs } = this.#spec;
    const fetch = boundedFetch(tools.http, { timeoutMs: maxRequestMs, maxBytes: maxMessageBytes });
    if (oauth !== undefined && 'signIn' in oauth && !isGrantFor(oauth.signIn, url))
      throw new Error('The sign-in is for another server.');
    const vault = oauth && openTokenVault(tools.stores, tokenSecretOf(oauth));
    return new sdk.StreamableHTTPClientTransport(new URL(url), {
      fetch,
      requestInit: { headers },
      onInsufficientScope: 'throw',
      ...(oauth === undefined || vault === undefined
        ? {}
        : { authProvider: oauthTokens(oauth, sdk, vault, fetch) }),
    });
  }

  #lost(client: Client): void {
    const { name, tools } = this.#spec;
    if (!this.#forget(client)) return;
    tools.log.warn({ server: name }, 'an MCP server closed its connection');
    this.#spec.ended();
  }

  /** Returns false where another client has replaced this one, or none is wanted any more. */
  #forget(client: Client): boolean {
    if (this.#client !== client) return false;
    this.#opening = this.#client = undefined;
    return true;
  }

  #failed(opening: Promise<Client>, error: unknown): void {
    if (this.#opening !== opening) return;
    this.#opening = undefined;
    if (this.#isClosed) return;
    const waitMs = Math.min(backoff.mostMs, backoff.firstMs * 2 ** this.#failures);
    this.#failures += 1;
    this.#notBefore = performance.now() + waitMs;
    this.#spec.tools.log.warn(
      { server: this.#spec.name, error, failures: this.#failures, waitMs },
      'an MCP server cannot be connected to',
    );
  }

  /** Logs a line of standard error, unless there are too many of them. */
  #complaint(line: string): void {
    const now = performance.now();
    if (now - this.#lines.since > 60_000) this.#lines = { since: now, count: 0 };
    this.#lines.count += 1;
    if (this.#lines.count > loggedLines) return;
    const isLast = this.#lines.count === loggedLines;
    this.#spec.tools.log.info(
      { server: this.#spec.name, line, ...(isLast ? { further: 'left out for a minute' } : {}) },
      'an MCP server wrote to its standard error',
    );
  }

  #unavailable(why = 'Its last failure is recent.', waitMs = 0): GatewayError {
    return new GatewayError(
      'upstream_error',
      `The MCP server "${this.#spec.name}" cannot be reached. ${why}`,
      {
        origin: 'upstream',
        status: 503,
        ...(waitMs > 0 ? { retryAfter: waitMs / 1000 } : {}),
      },
    );
  }
}

/** Ends the session of a client at its server, where there is one, and closes the client. */
async function endClient(client: Client): Promise<void> {
  const { transport } = client;
  if (transport !== undefined && 'terminateSession' in transport) {
    const { terminateSession } = transport as Transport & { terminateSession(): Promise<void> };
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      // A server need not let clients end sessions.
      terminateSession.call(transport).catch(() => undefined),
      new Promise<void>((resolve) => (timer = setTimeout(resolve, sessionEndMs))),
    ]);
    clearTimeout(timer);
  }
  await client.close().catch(() => undefined);
}
