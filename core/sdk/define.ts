/** Definitions of plugins and channels, with the members that only this repository sees. */
import type { Observable } from 'rxjs';
import type { Call } from './call.ts';
import type { GatewayConfig } from './config.ts';
import type { Codecs, Format, TunnelWatch } from './format.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { GuardedStream, HttpClient, UpstreamSockets } from './http.ts';
import type * as author from './author/channel.ts';
import type { Upstream, UpstreamRequest } from './channel.ts';

/*
 * What the definitions of authors are to the core, and to the plugins and channels of this repository: the same things seen whole, without a
 * promise that they stay as they are. What authors see of them stands in author/.
 */

export { defineChannel } from './author/define-channel.ts';
export {
  type ChannelConfig,
  type ChannelEntry,
  type ChannelKind,
  type ChannelOptions,
  type ChannelSpec,
  type OAuth2Identity,
} from './author/channel.ts';
export {
  definePlugin,
  type Plugin,
  type PluginEntry,
  type PluginSpec,
  type Reads,
  type Stage,
} from './author/plugin.ts';
export type {
  AdminChange,
  AdminRequest,
  AdminRouteHandler,
  RouteContext,
  RouteHandler,
} from './author/routes.ts';
export type { WholeEndpoint } from './endpoint.ts';

/** The rest of the pipeline. Call it once (again only to retry or fall back, before the first event was passed on). */
export type Next = (call: Call) => Promise<Observable<GatewayEvent>>;

/** A plugin at work on one call: see `Handler` of author/plugin.ts. */
export type Handler = (call: Call, next: Next) => Promise<Observable<GatewayEvent>>;

/** What a channel kind's `setup` gets besides its options. */
export interface ChannelTools extends author.ChannelTools {
  readonly log: Log;
  readonly http: HttpClient;
  /** WebSockets to this channel's provider, for `connect`. */
  readonly sockets: UpstreamSockets;
  /** Streams a file from a URL that the provider gave. */
  readonly download: GuardedStream;
  readonly format: (name: string) => Format | undefined;
}

/** A region of a provider, and the key that is sent there. */
export interface KeyRegion {
  readonly region: string;
  /** Index in `ChannelTools.keys`. Absent: none is sent. */
  readonly key?: number;
  /** See `ChannelKey.site`. */
  readonly site?: number;
}

/** What one instance of a channel kind can do. */
export interface ChannelParts extends author.ChannelParts {
  /** Shapes that only this kind speaks: a codec for an operation, under its own format name in `speaks`. */
  readonly codecs?: Codecs;
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /**
   * Where a batch of the chat-completions API names its model, whose lines name none: `model`, or `request_params.model`. Absent: its lines do.
   */
  readonly batchModel?: string;
  /** The provider's names in the list of known models, where they depend on the options of the channel. Default: those of the kind. */
  readonly catalogue?: readonly string[];
  /** Returns what a call cost in dollars, as the provider states it in the usage of a reply; undefined where it states nothing. */
  statedCost?(usage: JsonObject): number | undefined;
  /** True where the list of models tells their prices, so that it is asked for whatever models the channel serves. */
  readonly listsPrices?: boolean;
  /** The regions of the provider, each with each of its keys, in the order of `ChannelKey.index`. Absent: one region with all keys. */
  readonly regions?: readonly KeyRegion[];
  /** See `Channel.events`. */
  events?(call: Call, request: UpstreamRequest): Observable<GatewayEvent>;
  /** See `Channel.connect`. */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
  /** See `Channel.watch`. */
  watch?(answers: TunnelWatch): TunnelWatch;
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
