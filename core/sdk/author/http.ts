/** Public types of the HTTP and WebSocket clients that channels get for their provider. */
import type { Observable } from 'rxjs';
import type { GatewayEvent } from '../../model/event.ts';
import type { Form, Upload } from '../../model/form.ts';
import type { BodyStream, Upstream } from '../channel.ts';
import type { Call } from './call.ts';

/**
 * HTTP request to a provider.
 *
 * @example
 * tools.http.send(call, { url: `${baseUrl}${request.path}`, headers: { authorization: `Bearer ${key}` }, body: request.body });
 */
export interface HttpRequest {
  /** Absolute, as `new URL(…).href` spells it, without a fragment. */
  readonly url: string;
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PATCH' | 'PUT';
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A form is sent as `multipart/form-data`, which replaces the content type; a file as its bytes, read while they are sent. */
  readonly body?: Buffer | string | Form | Upload;
  /** Stream that is sent in place of the body. */
  readonly upload?: BodyStream;
}

/**
 * Sends requests to a channel's provider over kept-alive connections, with the operator's headers, proxy and times.
 *
 * @example
 * const upstream = await tools.http.send(call, { url, headers, body: request.body });
 */
export interface HttpClient {
  /**
   * Resolves when status and headers are there, whatever the status. Rejects with a GatewayError (origin upstream) when the provider
   * cannot be reached or stays silent. Stops within the call: reading follows `call.gate`, the end of the call closes the socket.
   */
  send(call: Call, request: HttpRequest): Promise<Upstream>;
  /**
   * Reads a small document outside of any call; with POST where there is a `body`. Rejects when that takes longer than 30 seconds, or the
   * response exceeds 4 MiB or has another status than 200.
   */
  read(request: Pick<HttpRequest, 'url' | 'headers'> & { readonly body?: string }): Promise<Buffer>;
}

/**
 * Streams a file from a URL that a provider gave, from public addresses alone, whatever its size. Resolves when status and headers are
 * there; rejects with GatewayError (origin upstream) without the address. Reading follows `call.gate` and ends with the call.
 *
 * @example
 * const { bytes } = await tools.download(call, url);
 */
export type Download = (
  call: Pick<Call, 'gate' | 'onEnd'>,
  url: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Upstream>;

/**
 * WebSocket to a provider.
 *
 * @example
 * const request: UpstreamSocketRequest = { url: 'wss://api.acme.example/v1/realtime', headers: { authorization: `Bearer ${key}` } };
 */
export interface UpstreamSocketRequest {
  /** Absolute: `wss://…` or `ws://…`. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Opens WebSockets to a channel's provider, with limits, pings and backpressure.
 *
 * @example
 * connect: (call, request) => tools.sockets.connect(call, { url: baseUrl + request.path, headers: request.headers })
 */
export interface SocketClient {
  /**
   * Resolves when the socket is open. The stream is for one subscriber: from then on `call.input` is sent and what comes is read, no faster
   * than `call.gate` allows; `call.inputGate` is shut while the provider takes no more. The last message says how the socket was closed.
   * Rejects with a GatewayError (origin upstream) when it is refused or the provider cannot be reached.
   */
  connect(call: Call, request: UpstreamSocketRequest): Promise<Observable<GatewayEvent>>;
}
