/** The endpoint: many MCP servers as one, for callers with keys of the gateway. */
import { randomUUID } from 'node:crypto';
import type { Server } from '@modelcontextprotocol/server';
import type { Observable } from 'rxjs';
import { caller, GatewayError, type Call, type GatewayEvent, type PluginTools } from 'sluice';
import type { McpOptions } from '../options.ts';
import { rightsOf } from './access.ts';
import { addHandlers, authInfoOf, capabilitiesOf } from './handlers.ts';
import { checkOrigin, eventsOf, isEndless, OpenStreams, requestOf, type ReadingWatch } from './http.ts';
import { Minutes } from './minutes.ts';
import { nameScheme } from './names.ts';
import { ownUpstream } from './own-upstream.ts';
import { SessionRecords } from './records.ts';
import { repeatInitialize } from './restore.ts';
import { toolRunner } from './run-tool.ts';
import { loadServerSdk, type McpServerSdk } from './sdk.ts';
import { Session } from './session.ts';
import { Sessions } from './sessions.ts';
import { Stateless } from './stateless.ts';
import { Subscriptions, type Subscriber } from './subscriptions.ts';
import { Upstream, type ListKind, type UpstreamEvents } from './upstream.ts';
import { View } from './view.ts';

const serverInfo = { name: 'sluice', version: '1' };

/** Sessions that a key may begin in a minute, for each that it may have. */
const beginsPerSession = 5;

/** Adds the endpoint. Connects to servers on first use. */
export async function addEndpoint(options: McpOptions, tools: PluginTools): Promise<void> {
  const endpoint = new Endpoint(options, tools, await loadServerSdk());
  for (const method of ['GET', 'POST', 'DELETE'] as const)
    tools.endpoint({
      method,
      path: options.path,
      format: 'chat-completions',
      handle: (call) => endpoint.handle(call),
    });
  tools.onDrain(() => endpoint.drain());
  tools.onClose(() => endpoint.close());
}

class Endpoint {
  readonly #options: McpOptions;
  readonly #tools: PluginTools;
  readonly #sdk: McpServerSdk;
  readonly #scheme;
  readonly #sessions: Sessions;
  readonly #records: SessionRecords;
  /** Sessions that are being set up from their records, by key and id. */
  readonly #restoring = new Map<string, Promise<Session | undefined>>();
  readonly #shared: readonly Upstream[];
  readonly #subscriptions: Subscriptions;
  readonly #runTool;
  /** Sessions may have processes of their own, which take a while to start and to end. */
  readonly #begun: Minutes;
  /** Streams of notifications, which would keep a gateway that stops waiting. */
  readonly #endless = new OpenStreams();
  readonly #stateless: Stateless;

  constructor(options: McpOptions, tools: PluginTools, sdk: McpServerSdk) {
    this.#options = options;
    this.#tools = tools;
    this.#sdk = sdk;
    this.#scheme = nameScheme(Object.entries(options.servers).map(([name, { prefix }]) => prefix ?? name));
    this.#records = new SessionRecords(tools.stores, { path: options.path, ...options.limits });
    this.#sessions = new Sessions(options.limits, {
      records: this.#records,
      log: tools.log,
      ended: (session) => this.#subscriptions.end(session),
    });
    this.#subscriptions = new Subscriptions(() => this.#subscribers(), tools.log);
    const events: UpstreamEvents = {
      changed: (upstream, kind) => this.#changed(upstream, kind),
      updated: (upstream, uri) => this.#subscriptions.updated(upstream, uri),
      ended: (upstream) => this.#subscriptions.renew(upstream),
    };
    this.#shared = Object.entries(options.servers).map(
      ([name, config]) => new Upstream({ name, config, scheme: this.#scheme, tools, events }),
    );
    this.#begun = new Minutes(beginsPerSession * options.limits.sessionsPerKey);
    const { callsPerMinute } = options.limits;
    this.#runTool = toolRunner(
      options,
      tools,
      callsPerMinute === undefined ? undefined : new Minutes(callsPerMinute),
      tools.metrics.counter('tool_calls', 'Calls of tools of MCP servers.', ['server', 'outcome']),
    );
    this.#stateless = new Stateless({
      sdk,
      log: tools.log,
      options,
      subscriptions: this.#subscriptions,
      view: (call) => this.#view(call, () => this.#shared),
      server: (call) => {
        const server = this.#server(false);
        addHandlers(server, { ...this.#parts(), view: this.#view(call, () => this.#shared) });
        return server;
      },
    });
  }

  async handle(call: Call): Promise<Observable<GatewayEvent>> {
    checkOrigin(call, this.#options.origins);
    const request = requestOf(call);
    const parsedBody: unknown = call.wire.method === 'POST' ? call.body : undefined;
    const endless = isEndless(call.wire.method, parsedBody) ? this.#endless : undefined;
    if (!(await this.#sdk.isLegacyRequest(request, parsedBody)))
      return this.#stateless.handle(call, request, parsedBody, endless);
    const id = call.wire.headers['mcp-session-id'];
    const session =
      typeof id === 'string' ? await this.#sessionOf(call, id) : await this.#begin(call, parsedBody);
    if (call.wire.method === 'GET' && session.record !== undefined) this.#listen(call);
    const response = await session.transport.handleRequest(request, {
      parsedBody,
      authInfo: authInfoOf(call),
    });
    if (typeof id !== 'string') await this.#add(session, response, parsedBody);
    return eventsOf(call, response, watchOf(session), endless);
  }

  drain(): void {
    this.#endless.endAll();
  }

  async close(): Promise<void> {
    this.#subscriptions.close();
    await this.#sessions.close();
    await this.#stateless.close();
    await Promise.all(this.#shared.map(({ server }) => server.close()));
  }

  async #sessionOf(call: Call, id: string): Promise<Session> {
    const keyId = call.get(caller)?.id ?? '';
    const session = (await this.#sessions.find(id, keyId)) ?? (await this.#restored(call, id, keyId));
    if (session === undefined) throw new GatewayError('not_found', 'Unknown session. Initialize a new one.');
    return session;
  }

  /** Returns a session for a client that begins. It counts once the client was let in. */
  async #begin(call: Call, body: unknown): Promise<Session> {
    if (!this.#sdk.isInitializeRequest(body))
      throw new GatewayError(
        'invalid_request',
        'Send initialize first, and the header mcp-session-id from then on.',
      );
    const keyId = call.get(caller)?.id ?? '';
    const retryAfter = this.#begun.take(keyId);
    if (retryAfter > 0)
      throw new GatewayError('rate_limit_exceeded', 'Too many sessions were begun in this minute.', {
        retryAfter,
      });
    return await this.#open(call, randomUUID(), keyId, this.#isBound(call));
  }

  /** Adds a session that has begun, with its record, unless the client was refused. */
  async #add(session: Session, response: Response, body: unknown): Promise<void> {
    const { id, keyId, record } = session;
    try {
      if (!response.ok || !this.#sdk.isInitializeRequest(body)) await session.close();
      else {
        if (record !== undefined) await this.#records.add(id, keyId, body.params.protocolVersion);
        this.#sessions.add(session);
      }
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Returns true when the sessions of a caller have connections of their own, and the state behind them, in one worker. */
  #isBound(call: Call): boolean {
    const rights = rightsOf(call.get(caller), this.#options);
    return this.#shared.some(({ config }) => config.connection === 'session' && rights.mayUse(config));
  }

  /** Returns a session that another worker has begun. It is set up once for requests that come at the same time. */
  async #restored(call: Call, id: string, keyId: string): Promise<Session | undefined> {
    if (this.#isBound(call)) return undefined;
    const name = `${keyId} ${id}`;
    const restoring =
      this.#restoring.get(name) ?? this.#restore(call, id, keyId).finally(() => this.#restoring.delete(name));
    this.#restoring.set(name, restoring);
    return await restoring;
  }

  async #restore(call: Call, id: string, keyId: string): Promise<Session | undefined> {
    const record = await this.#records.find(id, keyId);
    if (record === undefined || !(await this.#records.renew(id, keyId))) return undefined;
    const known = await this.#sessions.find(id, keyId);
    if (known !== undefined) return known;
    const session = await this.#open(call, id, keyId, false);
    try {
      await repeatInitialize(session.transport, record.version);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#sessions.add(session);
    return session;
  }

  /** Connects to all servers of a caller who waits for notifications: other requests of the session may reach other workers. */
  #listen(call: Call): void {
    void this.#view(call, () => this.#shared).resources();
  }

  async #open(call: Call, id: string, keyId: string, isBound: boolean): Promise<Session> {
    const server = this.#server(true);
    const transport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: async () => {
        this.#sessions.remove(id);
        if (!isBound) await this.#records.end(id, keyId);
      },
    });
    const rights = rightsOf(call.get(caller), this.#options);
    const session = new Session({ id, keyId, rights, server, transport, log: this.#tools.log });
    const now = performance.now();
    if (!isBound) session.record = { checkedAt: now, renewedAt: now };
    const parts = { scheme: this.#scheme, tools: this.#tools, subscriptions: this.#subscriptions };
    const upstreams = this.#shared.map((shared) =>
      shared.config.connection === 'session' ? ownUpstream(session, shared, parts) : () => shared,
    );
    addHandlers(server, {
      ...this.#parts(),
      view: this.#view(call, () => upstreams.map((one) => one())),
      around: (upstream, context, run) => session.around(upstream, context, run),
      subscribe: (upstream, uri, isOn) => this.#subscriptions.set(session, upstream, uri, isOn),
    });
    server.setNotificationHandler('notifications/roots/list_changed', async () => {
      for (const { server: own } of session.own)
        await own.run((client) => client.sendRootsListChanged()).catch(() => undefined);
    });
    await server.connect(transport);
    return session;
  }

  #view(call: Call, upstreams: () => readonly Upstream[]): View {
    const rights = rightsOf(call.get(caller), this.#options);
    return new View(() => upstreams().filter(({ config }) => rights.mayUse(config)), rights, {
      scheme: this.#scheme,
      log: this.#tools.log,
      sdk: this.#sdk,
    });
  }

  #server(hasSessions: boolean): Server {
    return new this.#sdk.Server(serverInfo, { capabilities: capabilitiesOf(hasSessions) });
  }

  #parts() {
    const { pageSize, seconds } = this.#options.limits;
    return {
      sdk: this.#sdk,
      log: this.#tools.log,
      runTool: this.#runTool,
      pageSize,
      timeoutMs: seconds * 1000,
    };
  }

  #changed(upstream: Upstream, kind: ListKind): void {
    this.#stateless.changed(upstream, kind);
    for (const session of this.#sessions)
      if (session.rights.mayUse(upstream.config) && !session.own.some(({ name }) => name === upstream.name))
        session.changed(kind);
  }

  *#subscribers(): Iterable<Subscriber> {
    yield* this.#sessions;
    yield* this.#stateless.listeners;
  }
}

function watchOf(session: Session): ReadingWatch {
  return {
    opened: () => void (session.open += 1),
    congested: (isFull) => void (session.congested += isFull ? 1 : -1),
    closed() {
      session.open -= 1;
      session.lastUsed = performance.now();
    },
  };
}
