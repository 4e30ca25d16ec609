/** Public types of the HTTP client for services that the operator has named, such as a moderation service of a plugin. */
import type { JsonValue } from '../../model/json.ts';

/**
 * A request to a service that the operator has named.
 *
 * @example
 * const answer = await http.ask({ url, json: { text }, signal: call.signal });
 */
export interface ServiceRequest {
  /** `http:` or `https:`. From the operator's options, never from a client: no address is refused. */
  readonly url: string;
  /** Default: POST with a body, GET without. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as `application/json`. */
  readonly json?: JsonValue;
  /** Sent as it is, in place of `json`. */
  readonly body?: string | Buffer;
  /** Timeout for the complete response in milliseconds. Default 10,000. */
  readonly timeout?: number;
  /** Maximum size of the response in bytes. Default 4 MiB. */
  readonly limit?: number;
  /** Cancels the request when it aborts: use the signal of the call that waits for the response. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Response of a service, with any status.
 *
 * @example
 * if (answer.status !== 200) throw new GatewayError('forbidden', 'This cannot be checked now.');
 * const verdict = answer.json();
 */
export interface ServiceAnswer {
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  text(): string;
  /** Throws when the body is no JSON. */
  json(): JsonValue;
}

/**
 * A response whose body is read as it comes.
 *
 * @example
 * for await (const chunk of stream.body) log.debug({ bytes: chunk.length }, 'a part of the response');
 */
export interface ServiceStream {
  readonly status: number;
  /** Lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** For one reader, at the reader's pace. Leaving the loop closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /** Closes the connection of a response whose body is not read, or not to its end. */
  close(): void;
}

/**
 * Sends requests to services that the operator has named, over kept-alive connections.
 *
 * @example
 * const answer = await http.ask({ url: options.url, json: { text }, timeout: 2_000, signal: call.signal });
 */
export interface Services {
  /**
   * Sends a request. Rejects with an Error whose message names the host when no response comes in time or it exceeds `limit`. If the plugin does not
   * catch that error, the client gets 500 without the address.
   */
  ask(request: ServiceRequest): Promise<ServiceAnswer>;
  /**
   * As `ask`, for responses that are long or have no end, such as server-sent events. `timeout` counts until status and headers are there.
   * The response then lasts until it ends, its reader leaves, or `signal` aborts: there is no limit of bytes and none of silence.
   */
  open(request: Omit<ServiceRequest, 'limit'>): Promise<ServiceStream>;
}
