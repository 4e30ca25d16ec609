/** Tools of channels that add computed headers to each request. */
import type { Observable } from 'rxjs';
import type { ChannelTools } from '../../sdk/author/channel.ts';
import type { HttpRequest } from '../../sdk/author/http.ts';
import type { Upstream } from '../../sdk/channel.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * Returns the headers that authorize a request with a key.
 *
 * @example
 * const signed: Authorizing = ({ url, body }, key) => ({ 'x-signature': sign(url, body, key) });
 */
export interface Authorizing {
  (request: Pick<HttpRequest, 'url' | 'method' | 'body'>, key: string): Headers | Promise<Headers>;
  /** Called with headers that the provider refused with 401. Add it where the next headers may differ: the request is then sent once more. */
  forget?(headers: Headers): void;
}

/**
 * Returns the tools of a channel with headers added that are made for each request: a signature, or an access token that expires. `headersOf`
 * gets the request and the key of the call (outside of a call the first key), and returns headers in lower case. When `headersOf` has `forget`
 * and the provider answers 401 to `http.send`, `forget` is called with the refused headers, and the request is sent once more unless its body
 * was a stream. `http.read` and `sockets.connect` get the headers and are not retried.
 *
 * @example
 * setup(options, tools) {
 *   const { http } = withAuthorization(tools, ({ url }, key) => ({ 'x-signature': sign(url, key) }));
 *   return { speaks: { chat: ['chat-completions'] }, open: (call, request) => http.send(call, addressed(request)) };
 * }
 */
export function withAuthorization<
  Tools extends Pick<ChannelTools, 'http' | 'keys'> & Partial<Pick<ChannelTools, 'sockets'>>,
>(tools: Tools, headersOf: Authorizing): Tools {
  const { http, keys, sockets } = tools;
  const keyOf = (call: Parameters<typeof http.send>[0]): string => keys[call.target?.key.index ?? 0] ?? '';
  const carrying = <R extends { readonly headers: Headers }>(request: R, headers: Headers): R => ({
    ...request,
    headers: { ...request.headers, ...headers },
  });
  return {
    ...tools,
    http: {
      ...http,
      send(call, request) {
        const key = keyOf(call);
        const send = (headers: Headers): Promise<Upstream> => {
          const answer = http.send(call, carrying(request, headers));
          if (headersOf.forget === undefined) return answer;
          return answer.then(async (upstream) => {
            if (upstream.status !== 401) return upstream;
            headersOf.forget?.(headers);
            // A streamed body cannot be sent again.
            if (request.upload !== undefined) return upstream;
            letGo(upstream.bytes);
            return http.send(call, carrying(request, await headersOf(request, key)));
          });
        };
        const headers = headersOf(request, key);
        return headers instanceof Promise ? headers.then(send) : send(headers);
      },
      read: async (request) => http.read(carrying(request, await headersOf(request, keys[0] ?? ''))),
    } satisfies ChannelTools['http'],
    ...(sockets && {
      sockets: {
        ...sockets,
        connect: async (call, request) =>
          sockets.connect(
            call,
            carrying(request, await headersOf({ url: request.url, method: 'GET' }, keyOf(call))),
          ),
      } satisfies ChannelTools['sockets'],
    }),
  };
}

/** Closes the connection of an unused response. */
function letGo(bytes: Observable<Buffer>): void {
  bytes.subscribe({ error: () => {} }).unsubscribe();
}
