import type { Form } from '../../model/form.ts';
import type { BodyStream, Upstream } from '../channel.ts';
import type { Call } from './call.ts';

/**
 * One HTTP request to a provider.
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
  /** A form is sent as `multipart/form-data`, which replaces the content type. */
  readonly body?: Buffer | string | Form;
  /** Sent in place of the body, as it comes. */
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
   * Reads a small document outside of any call; a `body` asks for it by POST. Rejects when that takes longer than half a minute, or the
   * answer exceeds four MiB or is no 200.
   */
  read(request: Pick<HttpRequest, 'url' | 'headers'> & { readonly body?: string }): Promise<Buffer>;
}
