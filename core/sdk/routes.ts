/** Types of the endpoints of a format: HTTP routes, WebSocket routes, tunnels to providers, and aliases of paths. */
import type { GatewayError } from './errors.ts';
import type { EncodedRequest, RouteParams } from './codec.ts';
import type { WireFrame } from './reply-codec.ts';
import type { Operation } from './operation.ts';
import type { JsonObject, JsonValue } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';
import type { Usage } from '../model/usage.ts';

/** An HTTP endpoint of a format. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** path-to-regexp 8 pattern; a literal colon is written `\\:`. */
  readonly path: string;
  readonly operation: Operation | 'get-model';
  /** Query that requests must have; other requests to the path go to another route. */
  readonly query?: Readonly<Record<string, string>>;
  /** Returns true for the requests of this route, by their headers in lower case. Absent: all requests to the path, but for those of a route that has it. */
  isFor?(headers: Readonly<Record<string, string | readonly string[] | undefined>>): boolean;
  /** Accepted kinds of bodies. Default: JSON only. */
  readonly accepts?: readonly ('json' | 'form')[];
  /** True where clients call their JSON `application/octet-stream`, too. */
  readonly untyped?: true;
  /** Limit that applies to the files of a form. */
  readonly files?: 'audio' | 'image' | 'video';
  /** Reads the route's own parameters. Throws 400 on nonsense. */
  params?(
    matched: Readonly<Record<string, string>>,
    query: URLSearchParams,
    headers: Readonly<Record<string, string | undefined>>,
  ): RouteParams;
  /** Throws GatewayError when required headers are missing or invalid. */
  checkHeaders?(headers: Readonly<Record<string, string | undefined>>): void;
}

/** Decoded message of a client over a WebSocket. Calls of one lane run one after the other; the lane of messages without one is ''. */
export type SocketRequest =
  | { readonly type: 'call'; readonly lane: string; readonly body: JsonObject }
  /** Cancels the running call of the lane. */
  | { readonly type: 'cancel'; readonly lane: string }
  /** Sends this message only, because the client's message is invalid or not supported. */
  | { readonly type: 'answer'; readonly message: JsonObject };

/** A WebSocket endpoint of a format: each message is one JSON object that requests a call, like the body of a request. */
export interface SocketRoute {
  /** Without parameters. */
  readonly path: string;
  /** Operation of its calls; it has a stream. */
  readonly operation: Operation;
  /** Subprotocols that may be selected: the first of them that a client offers is, and no other. */
  readonly protocols: readonly string[];
  read(message: JsonObject): SocketRequest;
  /** Returns a frame of a response as the text of a message; undefined for an end mark of an SSE stream. `data` is the text after `data:`. */
  write(data: string, lane: string): string | undefined;
  /** Returns the messages for a failure. `frames`: the format's error frames when the response had begun, else none. */
  failure(error: GatewayError, lane: string, frames: readonly WireFrame[]): readonly JsonObject[];
}

/**
 * Reads usage from the messages of one session over a WebSocket.
 *
 * @example
 * watch: (answers): SessionWatch => ({
 *   read: (message) => answers.read(message),
 *   get unfinished() {
 *     return answers.unfinished;
 *   },
 * }),
 */
export interface SessionWatch {
  /** Reads a message of the provider. Returns the usage of a response that ended with the message, once for each response. */
  read(message: SocketMessage): Usage | undefined;
  /**
   * Reads a message of the client that is sent to the provider. Returns the usage that the provider charges for what was sent so far, once.
   * Absent where the provider charges for responses alone.
   */
  sent?(message: SocketMessage): Usage | undefined;
  /** Estimated usage of a response that has begun and not ended; undefined when there is none. It is charged when the session ends. */
  readonly unfinished: Usage | undefined;
  /** Usage besides that of responses which was not returned yet; undefined when there is none. */
  readonly unreported?: Usage | undefined;
}

/** Replaces the client's name of a model in messages by the provider's, and back. */
export interface TunnelNames {
  /** Returns the client's message for the provider, or the error why it cannot be sent, such as a change of the session's model. */
  toProvider(message: SocketMessage): SocketMessage | GatewayError;
  toClient(message: SocketMessage): SocketMessage;
}

/** A WebSocket endpoint that passes through to a provider: messages of both sides are forwarded unchanged. */
export interface TunnelRoute {
  /** Without parameters. */
  readonly path: string;
  /** Operation of its calls; it has a codec. */
  readonly operation: Operation;
  /** Subprotocols that may be selected: the first of them that a client offers is, and no other. */
  readonly protocols: readonly string[];
  /** Returns the body of a call for a handshake. Throws 400 for missing or unsupported parameters. */
  body(query: URLSearchParams, headers: Readonly<Record<string, string | undefined>>): JsonObject;
  /** Returns the path, query and headers of the provider's WebSocket, for a call with this body. */
  dial(
    body: JsonObject,
    model: string,
    headers: Readonly<Record<string, string | undefined>>,
  ): Omit<EncodedRequest, 'body'>;
  watch(): SessionWatch;
  names(client: string, provider: string): TunnelNames;
  /** Returns the message for a client about a failure. */
  failure(error: GatewayError, requestId: string): string;
}

/** The endpoint to which a request to an alias goes, and its adjustments. */
export interface ResolvedAlias {
  readonly path: string;
  /** Default: the query of the request. */
  readonly query?: URLSearchParams;
  /** Members of the body that come from the client's path. They replace those of the client's body. */
  readonly members?: JsonObject;
  /** A member of the client's body that is a header at this path. */
  readonly header?: {
    readonly member: string;
    /** Lower case. A header of the client's own wins. */
    readonly name: string;
    /** Returns the value of the header; `member` is undefined where the body has none. */
    value(member: JsonValue | undefined): string;
  };
}

/** Other paths of a format's endpoints: those at which clients of a cloud call the same API. */
export interface PathAlias {
  /** Beginning of all its paths; `resolve` is not called for others. */
  readonly prefix: string;
  /** Returns the endpoint, or undefined for a path that is no alias. `path` is not decoded. */
  resolve(path: string, query: URLSearchParams): ResolvedAlias | undefined;
}
