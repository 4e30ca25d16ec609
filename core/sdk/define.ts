/** Definitions of plugins and channels, with the members that only this repository sees. */
import type { Observable } from 'rxjs';
import type { Call } from './call.ts';
import type { GatewayConfig } from './config.ts';
import type { Format } from './format.ts';
import type { HttpClient, UpstreamSockets } from './http.ts';
import type { GatewayEvent } from '../model/event.ts';
import type * as author from './author/channel.ts';
import type { UpstreamRequest } from './channel.ts';

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

/** Services for `setup` of a channel kind. */
export interface ChannelTools extends author.ChannelTools {
  readonly http: HttpClient;
  readonly sockets: UpstreamSockets;
  readonly format: (name: string) => Format | undefined;
}

/** Parts of one instance of a channel kind. */
export interface ChannelParts extends author.ChannelParts {
  /** See `Channel.events`. */
  events?(call: Call, request: UpstreamRequest): Observable<GatewayEvent>;
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
