/** One server behind the endpoint: its lists under the names that clients see. */
import type {
  Client,
  ClientOptions,
  Notification,
  Prompt,
  RequestOptions,
  Resource,
  ResourceTemplateType,
  Tool,
} from '@modelcontextprotocol/client';
import type { ServedConfig } from '../options.ts';
import {
  openToolServer,
  readPages,
  type ConnectionTools,
  type Page,
  type PageCursor,
  type ToolServer,
} from '../servers/index.ts';
import type { NameScheme } from './names.ts';

/** Kinds of lists that a server has. */
export type ListKind = 'tools' | 'prompts' | 'resources';

/** An entry of a list, with the name that callers see. */
export interface Exposed<T> {
  readonly exposed: string;
  readonly entry: T;
}

/** Receives the notifications of a server. */
export interface UpstreamEvents {
  changed(upstream: Upstream, kind: ListKind): void;
  /** A resource has changed that somebody subscribed to. */
  updated(upstream: Upstream, uri: string): void;
  /** The connection has ended, and the server's subscriptions with it. */
  ended?(upstream: Upstream): void;
  /** Any other notification, such as a line for the log. */
  notified?(upstream: Upstream, notification: Notification): void;
  /** Called with each new client before it connects, for the requests that the server may make. */
  prepare?(upstream: Upstream, client: Client): void;
}

/** Options of an upstream. */
export interface UpstreamSpec {
  readonly name: string;
  readonly config: ServedConfig;
  readonly scheme: NameScheme;
  readonly tools: ConnectionTools;
  readonly events: UpstreamEvents;
  readonly capabilities?: NonNullable<ClientOptions['capabilities']>;
}

/** A server with its lists. */
export class Upstream {
  readonly name: string;
  readonly config: ServedConfig;
  readonly prefix: string;
  readonly server: ToolServer;
  readonly #spec: UpstreamSpec;
  readonly #lists = new Map<
    string,
    { readonly until: number; readonly entries: Promise<readonly unknown[]> }
  >();

  /** Exposed names by list. */
  readonly #named = new WeakMap<readonly unknown[], readonly Exposed<unknown>[]>();

  constructor(spec: UpstreamSpec) {
    this.#spec = spec;
    this.name = spec.name;
    this.config = spec.config;
    this.prefix = spec.config.prefix ?? spec.name;
    this.server = openToolServer({
      name: spec.name,
      config: spec.config,
      tools: spec.tools,
      maxRequestMs: 3_600_000,
      ...(spec.capabilities === undefined ? {} : { capabilities: spec.capabilities }),
      prepare: (client) => this.#prepare(client),
      changed: () => this.#changed('tools'),
      ended: () => {
        this.#changed('prompts');
        this.#changed('resources');
        spec.events.ended?.(this);
      },
    });
  }

  async listTools(signal: AbortSignal): Promise<readonly Exposed<Tool>[]> {
    return this.#exposed(await this.server.listTools(signal));
  }

  async listPrompts(): Promise<readonly Exposed<Prompt>[]> {
    return this.#exposed(
      await this.#list<Prompt>('prompts', async (client, cursor, options) => {
        const page = await client.request({ method: 'prompts/list', ...cursor }, options);
        return { entries: page.prompts, nextCursor: page.nextCursor };
      }),
    );
  }

  listResources(): Promise<readonly Resource[]> {
    return this.#list<Resource>('resources', async (client, cursor, options) => {
      const page = await client.request({ method: 'resources/list', ...cursor }, options);
      return { entries: page.resources, nextCursor: page.nextCursor };
    });
  }

  listTemplates(): Promise<readonly ResourceTemplateType[]> {
    return this.#list<ResourceTemplateType>(
      'resources',
      async (client, cursor, options) => {
        const page = await client.request({ method: 'resources/templates/list', ...cursor }, options);
        return { entries: page.resourceTemplates, nextCursor: page.nextCursor };
      },
      'templates',
    );
  }

  /** Returns the entries under their names. They are named once for each list that the server gives. */
  #exposed<T extends { readonly name: string }>(entries: readonly T[]): readonly Exposed<T>[] {
    const known = this.#named.get(entries);
    if (known !== undefined) return known as readonly Exposed<T>[];
    const named = entries.map((entry) => ({
      entry,
      exposed: this.#spec.scheme.exposed(this.prefix, entry.name),
    }));
    this.#named.set(entries, named);
    return named;
  }

  #list<T>(kind: 'prompts' | 'resources', read: ReadPage<T>, key: string = kind): Promise<readonly T[]> {
    const known = this.#lists.get(key);
    if (known !== undefined && performance.now() < known.until) return known.entries as Promise<readonly T[]>;
    const entries = this.server.run((client, options) =>
      client.getServerCapabilities()?.[kind] === undefined
        ? Promise.resolve([])
        : readPages((cursor, bounds) => read(client, cursor, bounds), options, {
            name: this.name,
            maxEntries: this.config.maxTools,
            maxBytes: this.config.maxMessageBytes,
          }),
    );
    const listed = { until: performance.now() + this.config.toolsTtl * 1000, entries };
    this.#lists.set(key, listed);
    entries.catch(() => {
      if (this.#lists.get(key) === listed) this.#lists.delete(key);
    });
    return entries;
  }

  #prepare(client: Client): void {
    client.setNotificationHandler('notifications/prompts/list_changed', () => this.#changed('prompts'));
    client.setNotificationHandler('notifications/resources/list_changed', () => this.#changed('resources'));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
      this.#spec.events.updated(this, params.uri),
    );
    client.fallbackNotificationHandler = async (notification) =>
      this.#spec.events.notified?.(this, notification);
    this.#spec.events.prepare?.(this, client);
  }

  #changed(kind: ListKind): void {
    if (kind === 'prompts') this.#lists.delete('prompts');
    if (kind === 'resources') for (const key of ['resources', 'templates']) this.#lists.delete(key);
    this.#spec.events.changed(this, kind);
  }
}

type ReadPage<T> = (client: Client, cursor: PageCursor, options: RequestOptions) => Promise<Page<T>>;
