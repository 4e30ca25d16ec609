/** One session of a client: its SDK server object, its transport, and its own connections. */
import type { Client, Notification } from '@modelcontextprotocol/client';
import type {
  Server,
  ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Log } from 'sluice';
import type { ToolServer } from '../servers/index.ts';
import type { Rights } from './access.ts';
import type { Subscriber } from './subscriptions.ts';
import type { Upstream } from './upstream.ts';

/** Requests that a server may make of the client. */
const clientRequests = ['sampling/createMessage', 'elicitation/create', 'roots/list'] as const;

/** Options of a session. */
export interface SessionSpec {
  readonly id: string;
  /** Id of the key that opened it. */
  readonly keyId: string;
  /** Rights of that key. */
  readonly rights: Rights;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly log: Log;
}

/** State of one session. */
export class Session implements Subscriber {
  readonly id: string;
  readonly keyId: string;
  readonly rights: Rights;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly #log: Log;
  /** True once it has ended: nothing is opened for it any more. */
  isClosed = false;
  readonly subscribed = new Map<string, ToolServer>();
  /** Servers to which the session has connections of its own. */
  own: Upstream[] = [];
  lastUsed = performance.now();
  /** Time at which this worker last read and renewed the session's record. Absent for a session without a record, which lives only in this worker. */
  record?: { checkedAt: number; renewedAt: number };
  /** Number of responses that are being written. */
  open = 0;
  /** Number of responses whose client does not read fast enough. */
  congested = 0;
  /** Requests that run at servers of the session's own. */
  readonly #running = new Map<Upstream, Set<ServerContext>>();

  constructor({ id, keyId, rights, server, transport, log }: SessionSpec) {
    this.id = id;
    this.keyId = keyId;
    this.rights = rights;
    this.server = server;
    this.transport = transport;
    this.#log = log;
  }

  /** Runs a request to a server, which may ask the client in its context meanwhile. */
  async around<T>(upstream: Upstream, context: ServerContext, run: () => Promise<T>): Promise<T> {
    if (!this.own.includes(upstream)) return await run();
    const running = this.#running.get(upstream) ?? new Set();
    this.#running.set(upstream, running.add(context));
    try {
      return await run();
    } finally {
      running.delete(context);
    }
  }

  /** Forwards requests of servers that belong to the session to the client, for the capabilities that the client has declared. */
  passRequests(upstream: Upstream, client: Client): void {
    const capabilities = this.server.getClientCapabilities() ?? {};
    const declared = {
      sampling: capabilities.sampling,
      elicitation: capabilities.elicitation,
      roots: capabilities.roots,
    };
    for (const method of clientRequests) {
      if (declared[method.split('/')[0] as keyof typeof declared] === undefined) continue;
      client.setRequestHandler(method, async ({ params }, { mcpReq }) => {
        const request = { method, params: params as Record<string, unknown> };
        const options = { signal: mcpReq.signal };
        const [context] = this.#running.get(upstream) ?? [];
        // Sent in the response to the request that caused it, where there is one.
        const answer =
          context === undefined
            ? await this.server.request(request, options)
            : await context.mcpReq.send(request, options);
        return answer as never;
      });
    }
  }

  /** Passes notifications of a server of the session's own on to the client. */
  passNotification(upstream: Upstream, { method, params }: Notification): void {
    if (method !== 'notifications/message' || this.congested > 0) return;
    const line = params as Parameters<Server['sendLoggingMessage']>[0];
    const [context] = this.#running.get(upstream) ?? [];
    this.#quietly(
      context === undefined
        ? this.server.sendLoggingMessage(line, this.id)
        : context.mcpReq.log(line.level, line.data, line.logger),
    );
  }

  changed(kind: 'tools' | 'prompts' | 'resources'): void {
    if (this.congested > 0) return;
    const { server } = this;
    if (kind === 'tools') this.#quietly(server.sendToolListChanged());
    else if (kind === 'prompts') this.#quietly(server.sendPromptListChanged());
    else this.#quietly(server.sendResourceListChanged());
  }

  updated(uri: string): void {
    if (this.congested === 0) this.#quietly(this.server.sendResourceUpdated({ uri }));
  }

  /** Ends the session, its streams and its connections. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.allSettled([this.server.close(), ...this.own.map(({ server }) => server.close())]);
    this.own = [];
  }

  #quietly(sent: Promise<void>): void {
    sent.catch((error: unknown) =>
      this.#log.debug({ session: this.id, error }, 'a notification was not sent'),
    );
  }
}
