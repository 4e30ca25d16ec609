import type { Observable } from 'rxjs';
import type { Call } from './call.ts';
import type { BodyStream, Upstream } from './channel.ts';
import type { Form, Upload } from '../model/form.ts';
import type { GatewayEvent } from '../model/event.ts';

/** One HTTP request to a provider. */
export interface HttpRequest {
  /** Absolute, as `new URL(…).href` spells it, without a fragment. */
  readonly url: string;
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'PATCH' | 'PUT';
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A form is sent as `multipart/form-data`, which replaces the content type; a file as its bytes, read while they are sent. */
  readonly body?: Buffer | string | Form | Upload;
  /** Sent in place of the body, as it comes. */
  readonly upload?: BodyStream;
}

/** Sends requests to providers over kept-alive connections. */
export interface HttpClient {
  /**
   * Resolves when status and headers are there, whatever the status. Rejects with a GatewayError (origin upstream) when the provider
   * cannot be reached or stays silent. Stops within the call: reading follows `call.gate`, the end of the call closes the socket.
   */
  send(call: Call, request: HttpRequest): Promise<Upstream>;
  /**
   * Reads a small document outside of any call; a `body` asks for it by POST. Rejects when that takes longer than half a minute, or the
   * answer exceeds four MiB or is no 200.
   */
  read(request: Pick<HttpRequest, 'url' | 'headers'> & { readonly body?: string }): Promise<Buffer>;
  close(): Promise<void>;
}

/**
 * Streams a file from a URL that a provider gave, from public addresses alone, whatever its size. Resolves when status and headers are
 * there; rejects with GatewayError (origin upstream) that tells no address. Reading follows `call.gate` and ends with the call.
 */
export type GuardedStream = (
  call: Pick<Call, 'gate' | 'onEnd'>,
  url: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Upstream>;

/** One WebSocket to a provider. */
export interface UpstreamSocketRequest {
  /** Absolute: `wss://…` or `ws://…`. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Opens WebSockets to providers. */
export interface UpstreamSockets {
  /**
   * Resolves when the socket is open. The stream is for one subscriber: from then on `call.input` is sent and what comes is read, no faster
   * than `call.gate` allows; `call.inputGate` is shut while the provider takes no more. The last message says how the socket was closed.
   * Rejects with a GatewayError (origin upstream) when it is refused or the provider cannot be reached.
   */
  connect(call: Call, request: UpstreamSocketRequest): Promise<Observable<GatewayEvent>>;
  close(): Promise<void>;
}
