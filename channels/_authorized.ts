import type { ChannelTools as AuthorTools, HttpRequest } from 'sluice';
import type { ChannelTools } from 'sluice/internal';

type Headers = Readonly<Record<string, string>>;

/**
 * The tools of a channel whose requests carry headers that are made for each of them, besides their own: a signature, or a token that ends.
 * `key` is the one that the call goes with, the first where there is no call.
 */
export function authorized<Tools extends AuthorTools>(
  tools: Tools,
  headersOf: (
    request: Pick<HttpRequest, 'url' | 'method' | 'body'>,
    key: string,
  ) => Headers | Promise<Headers>,
): Tools {
  const { http, keys, sockets } = tools as AuthorTools & Partial<Pick<ChannelTools, 'sockets'>>;
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
        const headers = headersOf(request, keyOf(call));
        return headers instanceof Promise
          ? headers.then((later) => http.send(call, carrying(request, later)))
          : http.send(call, carrying(request, headers));
      },
      read: async (request) => http.read(carrying(request, await headersOf(request, keys[0] ?? ''))),
    } satisfies AuthorTools['http'],
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

/** The two halves of a key that is written `access|secret`. Throws when it has not two. */
export function halves(key: string): readonly [access: string, secret: string] {
  const [access = '', secret = '', ...more] = key.split('|').map((half) => half.trim());
  if (access === '' || secret === '' || more.length > 0)
    throw new Error('its key must be written as ACCESS|SECRET, with both halves of it.');
  return [access, secret];
}
