/** The HTTP client of channels: sends requests to a provider through undici, with the operator's headers, and reads small documents. */
import { request as requestBy } from '../performance/undici.ts';
import type { Upstream } from '../sdk/channel.ts';
import { upstreamBody } from './body.ts';
import { openConnections, type ConnectionOptions } from './connections.ts';
import { foundStale, Reader } from './reader.ts';
import { refusedRead } from './refused-read.ts';
import type { HttpClient, HttpRequest } from '../sdk/http.ts';
import { withUpstreamHeaders } from '../sdk/upstream-headers.ts';
import { WholeBytes } from '../sdk/whole-bytes.ts';

/** Changes of an operator to the headers of every request. Names in any case. */
export interface HeaderEdits {
  readonly set?: Readonly<Record<string, string>> | undefined;
  readonly remove?: readonly string[] | undefined;
}

/** Options of the client. */
export interface HttpClientOptions extends ConnectionOptions {
  readonly headers?: HeaderEdits | undefined;
}

/** Returns the client. Uses undici's `dispatch` directly, because its other interfaces are slower. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const connections = openConnections(options);
  const edited = headerEditor(options.headers);
  return {
    send(call, request) {
      return new Promise<Upstream>((resolve, reject) => {
        const { url } = request;
        const slash = url.indexOf('/', url.indexOf('://') + 3);
        const reader = new Reader(call, resolve, reject);
        if (reader.gone) return;
        const own = withUpstreamHeaders(call, request.headers);
        const headers = edited === undefined ? own : edited(own);
        const { body, added } = upstreamBody(request.upload ?? request.body);
        // Uses a new connection after a stale one, because the other kept-alive connections may be stale too.
        const unused = call.get(foundStale) === true;
        if (unused) call.set(foundStale, false);
        connections.to(slash < 0 ? url : url.slice(0, slash), unused).dispatch(
          {
            path: slash < 0 ? '/' : url.slice(slash),
            method: request.method ?? 'POST',
            headers: added === undefined ? headers : { ...headers, ...added },
            body,
            ...(unused ? { reset: true } : {}),
          },
          reader,
        );
      });
    },
    async read(request) {
      const { origin, pathname, search } = new URL(request.url);
      const { statusCode, body } = await requestBy.call(connections.to(origin, false), {
        path: pathname + search,
        ...(request.body === undefined ? { method: 'GET' } : { method: 'POST', body: request.body }),
        headers: edited === undefined ? request.headers : edited(request.headers),
        signal: AbortSignal.timeout(longestReading),
      });
      const whole = new WholeBytes(largestDocument);
      // Leaving the loop closes the connection.
      for await (const piece of body as AsyncIterable<Buffer>) whole.push(piece);
      if (statusCode !== 200) throw refusedRead(statusCode, whole.take());
      return whole.take();
    },
    close: () => connections.close(),
  };
}

/** Limits of `read`, in milliseconds and in bytes. */
const longestReading = 30_000;
const largestDocument = 4 * 1024 * 1024;

type Headers = HttpRequest['headers'];

/** Returns a function that applies the changes; undefined where there are none. */
function headerEditor({ set = {}, remove = [] }: HeaderEdits = {}):
  | ((headers: Headers) => Headers)
  | undefined {
  const added = Object.entries(set).map(([name, value]) => [name.toLowerCase(), value] as const);
  const gone = new Set([...remove.map((name) => name.toLowerCase()), ...added.map(([name]) => name)]);
  if (gone.size === 0) return undefined;
  return (headers) =>
    Object.fromEntries([...Object.entries(headers).filter(([name]) => !gone.has(name)), ...added]);
}
