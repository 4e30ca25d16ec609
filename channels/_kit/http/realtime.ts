import type { UpstreamRequest } from 'sluice';
import type { ChannelParts, ChannelTools } from 'sluice/internal';

/** Where the sockets of a provider are, and who it is told that asks. */
export interface SocketPlace {
  /** Where the paths of its formats begin: an HTTP address, with or without a query of its own. */
  readonly base: URL;
  /** The headers that carry a key, in lower case. `key` is undefined when the config gives none. */
  headers(key: string | undefined): Readonly<Record<string, string>>;
}

/** Sessions over WebSockets at the address of a channel, with its keys. */
export function overSockets(
  { base, headers }: SocketPlace,
  { keys, sockets }: Pick<ChannelTools, 'keys' | 'sockets'>,
): NonNullable<ChannelParts['connect']> {
  return (call, request) =>
    sockets.connect(call, {
      url: socketAddress(base, request),
      headers: { ...request.headers, ...headers(keys[call.target?.key.index ?? 0]) },
    });
}

function socketAddress(base: URL, { path, query }: Pick<UpstreamRequest, 'path' | 'query'>): string {
  const url = new URL(base);
  url.protocol = base.protocol === 'http:' ? 'ws:' : 'wss:';
  url.pathname = base.pathname.replace(/\/+$/, '') + path;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}
