import type { GatewayError } from './errors.ts';
import type { EncodedRequest, RouteParams } from './codec.ts';
import type { WireFrame } from './reply-codec.ts';
import type { Operation } from './operation.ts';
import type { JsonObject, JsonValue } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';
import type { Usage } from '../model/usage.ts';

/** A path the format answers. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** path-to-regexp 8 pattern; a literal colon is written `\\:`. */
  readonly path: string;
  readonly operation: Operation | 'get-model';
  /** Only requests whose query says this; the path's other requests belong to somebody else. */
  readonly query?: Readonly<Record<string, string>>;
  /** Returns true for the requests of this route, by their headers in lower case. Absent: all requests to the path, but for those of a route that has it. */
  isFor?(headers: Readonly<Record<string, string | readonly string[] | undefined>>): boolean;
  /** How bodies may come. Default: JSON alone. */
  readonly accepts?: readonly ('json' | 'form')[];
  /** True where clients call their JSON `application/octet-stream`, too. */
  readonly untyped?: true;
  /** Which of the limits on files holds for the files of a form. */
  readonly files?: 'audio' | 'image' | 'video';
  /** Reads the route's own parameters. Throws 400 on nonsense. */
  params?(
    matched: Readonly<Record<string, string>>,
    query: URLSearchParams,
    headers: Readonly<Record<string, string | undefined>>,
  ): RouteParams;
  /** Headers the route insists on. Throws GatewayError. */
  checkHeaders?(headers: Readonly<Record<string, string | undefined>>): void;
}

/** What a client asks for with one message over a socket. Calls of one lane run one after the other; the lane of those that name none is ''. */
export type SocketRequest =
  | { readonly type: 'call'; readonly lane: string; readonly body: JsonObject }
  /** The lane's running call shall end. */
  | { readonly type: 'cancel'; readonly lane: string }
  /** Nothing is to be done but to send this: the message makes no sense, or asks for what there is not. */
  | { readonly type: 'answer'; readonly message: JsonObject };

/** A path on which the format also speaks over a WebSocket: one JSON object a message, each asking for a call like a request's body. */
export interface SocketRoute {
  /** Without parameters. */
  readonly path: string;
  /** What its calls want done; the operation has a stream. */
  readonly operation: Operation;
  /** Subprotocols that may be selected: the first of them that a client offers is, and no other. */
  readonly protocols: readonly string[];
  read(message: JsonObject): SocketRequest;
  /** A frame of a reply as the text of a message; undefined for what only marks the end of a byte stream. `data` is what follows `data:`. */
  write(data: string, lane: string): string | undefined;
  /** Tells of a failure. `frames`: what the format's stream says of it when the reply had begun, else none. */
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
  readonly untold?: Usage | undefined;
}

/** Puts the names of one model in place of each other where messages carry them: the client's name here, the provider's there. */
export interface TunnelNames {
  /** The client's message for the provider, or why it cannot be sent: the session's model stays what it is. */
  toProvider(message: SocketMessage): SocketMessage | GatewayError;
  toClient(message: SocketMessage): SocketMessage;
}

/** A path whose WebSocket passes through to a provider: the messages of both sides go on as they are. */
export interface TunnelRoute {
  /** Without parameters. */
  readonly path: string;
  /** What is wanted of the channel; there is a codec for it. */
  readonly operation: Operation;
  /** Subprotocols that may be selected: the first of them that a client offers is, and no other. */
  readonly protocols: readonly string[];
  /** The handshake as the body of a call. Throws 400 on what is missing or cannot be served. */
  body(query: URLSearchParams, headers: Readonly<Record<string, string | undefined>>): JsonObject;
  /** Where the socket is opened at the provider, for a call with this body. */
  dial(
    body: JsonObject,
    model: string,
    headers: Readonly<Record<string, string | undefined>>,
  ): Omit<EncodedRequest, 'body'>;
  watch(): SessionWatch;
  names(client: string, provider: string): TunnelNames;
  /** The message that tells a client of a failure. */
  failure(error: GatewayError, requestId: string): string;
}

/** The address here of a request that came to an alias of a format's paths. */
export interface ResolvedAlias {
  readonly path: string;
  /** Default: the query of the request. */
  readonly query?: URLSearchParams;
  /** Members that the body has at this path although the client put them into its own: they replace those of the client's body. */
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

/** Other addresses of the paths of a format: those at which clients of a cloud call the same API. */
export interface PathAlias {
  /** Paths that begin otherwise are never asked about. */
  readonly prefix: string;
  /** Returns the address here, or undefined for a path that is no alias. `path` is not decoded. */
  resolve(path: string, query: URLSearchParams): ResolvedAlias | undefined;
}
