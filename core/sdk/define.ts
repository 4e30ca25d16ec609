import type { IncomingMessage } from 'node:http';
import type { Observable } from 'rxjs';
import type { Call } from '../call/call.ts';
import type { GatewayConfig } from './config.ts';
import type { Settings } from '../settings/index.ts';
import type { Codecs, Format } from './format.ts';
import type { Load } from '../front/overload.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Bookkeeper, Ledger } from '../money/ledger/index.ts';
import type { Prices } from '../money/prices/index.ts';
import type { Rates } from '../money/rates/index.ts';
import type { UsageLog } from '../money/usage-log/index.ts';
import type { Catalog } from '../routing/catalog.ts';
import type { DirectCalls } from '../routing/direct-call.ts';
import type { Health } from '../routing/health/index.ts';
import type { TaskCalls } from '../routing/task-call.ts';
import type { ApiKeys } from '../state/api-keys.ts';
import type { Processes } from '../state/links/processes.ts';
import type { Stores } from '../state/stores.ts';
import type { FetchMedia } from '../upstream/guarded/media.ts';
import type { GuardedStream } from '../upstream/guarded/stream.ts';
import type { HttpClient } from '../upstream/send.ts';
import type { Services, Endpoint, RouteHandler } from './author/tools.ts';
import type { UpstreamSockets } from '../upstream/socket.ts';
import type * as author from './author/channel.ts';
import type { Reads } from './author/plugin.ts';
import type { Upstream, UpstreamRequest } from './channel.ts';
import type { Notices } from './notices.ts';

/*
 * What the definitions of authors are to the core, and to the plugins and channels of this repository: the same things seen whole, without a
 * promise that they stay as they are. What authors see of them stands in author/.
 */

export {
  defineChannel,
  type ChannelEntry,
  type ChannelKind,
  type ChannelOptions,
  type ChannelSpec,
} from './author/channel.ts';
export {
  definePlugin,
  type Plugin,
  type PluginEntry,
  type PluginSpec,
  type Reads,
  type Stage,
} from './author/plugin.ts';
export type { Endpoint, RouteHandler } from './author/tools.ts';

/** The rest of the pipeline. Call it once (again only to retry or fall back, before the first event was passed on). */
export type Next = (call: Call) => Promise<Observable<GatewayEvent>>;

/** A plugin at work on one call: see `Handler` of author/plugin.ts. */
export type Handler = (call: Call, next: Next) => Promise<Observable<GatewayEvent>>;

/** What `setup` of a plugin gets besides its options: `PluginTools`, each of them whole, and what no promise is made of. */
export interface InternalTools {
  /** Writes lines that carry the plugin's name; known secrets are masked. */
  readonly log: Log;
  readonly stores: Stores;
  readonly apiKeys: ApiKeys;
  readonly catalog: Catalog;
  /** Calls of the gateway's own, to a channel of its choice. Works once the gateway has been built, not during `setup`. */
  readonly calls: DirectCalls;
  /** Questions to providers about tasks that they work on. As `calls`, not during `setup`. */
  readonly taskCalls: TaskCalls;
  /** Asks services that the operator has named. */
  readonly http: Services;
  /** Streams a file from a URL that a provider gave. */
  readonly download: GuardedStream;
  readonly prices: Prices;
  readonly ledger: Ledger;
  readonly bookkeeper: Bookkeeper;
  readonly usageLog: UsageLog;
  readonly rates: Rates;
  /** What is known of channels' health. */
  readonly health: Health;
  /** How much this process has to do. */
  readonly overload: Load;
  /** The processes that serve together, of which this is one. */
  readonly processes: Processes;
  /** The settings in force; secrets in them are for their owners alone. */
  readonly settings: Settings;
  readonly notices: Notices;
  /** Adds a route of the plugin's own, outside the pipeline: no key is asked. Paths of formats cannot be taken. */
  readonly route: (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    handler: RouteHandler,
  ) => void;
  /** Adds a route of the plugin's own inside the pipeline: its caller is identified and admitted; the stages behind that are about models. */
  readonly endpoint: (endpoint: Endpoint) => void;
  /** Adds a way to tell that a request comes from whoever runs the gateway, who may see what strangers may not. */
  readonly operator: (isOperator: (request: IncomingMessage) => Promise<boolean>) => void;
  /** The most that any running plugin reads of replies. */
  readonly reads: () => Reads;
  /** Fetches images and files from URLs that clients gave: from public addresses alone, and within the limits of the settings. */
  readonly fetchMedia: FetchMedia;
  /** The format of a name; undefined when there is none. */
  readonly format: (name: string) => Format | undefined;
  /** Runs when the gateway closes or this configuration is replaced. */
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** What a channel kind's `setup` gets besides its options. */
export interface ChannelTools extends author.ChannelTools {
  readonly log: Log;
  readonly http: HttpClient;
  /** WebSockets to this channel's provider, for `connect`. */
  readonly sockets: UpstreamSockets;
  readonly format: (name: string) => Format | undefined;
}

/** What one instance of a channel kind can do. */
export interface ChannelParts extends author.ChannelParts {
  /** Shapes that only this kind speaks: a codec for an operation, under its own format name in `speaks`. */
  readonly codecs?: Codecs;
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /** See `Channel.connect`. */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
}

/** Declares a format: one folder in `core/formats/`. */
export function defineFormat(format: Format): Format {
  return format;
}

/**
 * Declares the operator's configuration; it only carries the types. Falsy entries of `plugins` and `channels` are passed over.
 *
 * @example
 * export default defineConfig({
 *   listen: { port: 8080 },
 *   channels: [demo(), env('OPENAI_API_KEY') && openai({ key: env('OPENAI_API_KEY') })],
 * });
 */
export function defineConfig(config: GatewayConfig): GatewayConfig {
  return config;
}
