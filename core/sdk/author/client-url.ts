/**
 * A request to a URL that a client gave.
 *
 * @example
 * const response = await tools.fetchClientUrl(url, { signal: call.signal });
 */
export interface ClientUrlRequest {
  /** Default: `GET`. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Ends the request and its response, however far they have come. */
  readonly signal?: AbortSignal;
  /** Largest response body. Default: 4 MiB. */
  readonly maxBytes?: number;
  /** Milliseconds until the head of the response. Default: 15,000. The body ends with `signal`. */
  readonly timeoutMs?: number;
}

/**
 * Sends a request to a URL that a client gave. Connects to public addresses alone, which are checked when the connection is opened, and to
 * those that `fetch.allow` in the config names. Uses no proxy. Returns redirects as they are: they are not followed. Rejects with the same
 * Error for an address that is not allowed and for one that does not answer.
 *
 * @example
 * const response = await tools.fetchClientUrl(url, { method: 'POST', body, signal: call.signal });
 */
export type FetchClientUrl = (url: string, request: ClientUrlRequest) => Promise<Response>;
