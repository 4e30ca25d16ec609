/** The contract of a format: its codecs and routes. */
import type { ListedModel } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { Codec } from './codec.ts';
import type { GatewayError } from './errors.ts';
import type { Operation, RequestOf } from './operation.ts';
import type { PathAlias, Route, SocketRoute, TunnelRoute } from './routes.ts';

export type * from './codec.ts';
export type * from './operation.ts';
export type * from './reply-codec.ts';
export type * from './reply-words.ts';
export type * from './routes.ts';

/** A format's model list. */
export interface ModelListing {
  /** `query` is the request's query (limit, after_id, pageSize, pageToken …). Throws 400 on nonsense. */
  list(models: readonly ListedModel[], query: URLSearchParams): JsonObject;
  one(model: ListedModel): JsonObject;
  /** Returns the id of a model that a path names by an address. Absent: paths name ids. */
  idOf?(named: string): string;
}

/** An error as it goes over the wire. */
export interface ErrorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/**
 * State of the caller's limit of requests or tokens per minute.
 *
 * @example
 * const standing: RateStanding = { counts: 'requests', limit: 60, remaining: 12, resetMs: 48_000 };
 */
export interface RateStanding {
  readonly counts: 'requests' | 'tokens';
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the whole limit is free again. */
  readonly resetMs: number;
}

/**
 * A codec for each operation that a format supports, or that a channel supports in a format of its own.
 *
 * @example
 * const codecs: Codecs = { embed: embedCodec, rerank: rerankCodec };
 */
export type Codecs = { readonly [O in Operation]?: Codec<RequestOf<O>> };

/** A wire dialect: shapes, routes, errors. It knows no provider. */
export interface Format {
  readonly name: string;
  readonly routes: readonly Route[];
  readonly codecs: Codecs;
  /** Returns the error before anything was sent. */
  errorReply(error: GatewayError, requestId: string): ErrorReply;
  /** Returns the headers of every response in this format. */
  replyHeaders(requestId: string): Readonly<Record<string, string>>;
  /** Returns headers with the state of the gateway's rate limits. `retryMs`: set when they rejected the call. Absent if the format has no such headers. */
  rateHeaders?(standings: readonly RateStanding[], retryMs?: number): Readonly<Record<string, string>>;
  readonly models?: ModelListing;
  readonly sockets?: readonly SocketRoute[];
  readonly tunnels?: readonly TunnelRoute[];
  /** Resolved before any route is looked for; they hold for the paths of all formats and plugins. */
  readonly aliases?: readonly PathAlias[];
}
