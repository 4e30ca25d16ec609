/** Opens WebSocket sessions at the base URL of a channel with its keys, and refuses kinds of sessions that a provider does not have. */
import { GatewayError, type UpstreamRequest, type Call, type ChannelParts, type ChannelTools } from 'sluice';

/** Address and key headers for the sessions of a provider. */
export interface SocketEndpoint {
  /** Base URL of the provider's paths: an HTTP address, with or without a query. */
  readonly base: URL;
  /** Returns the headers that carry a key, in lower case. `key` is undefined when the config gives none. */
  headers(key: string | undefined): Readonly<Record<string, string>>;
}

/** Refuses sessions of another kind, such as those that translate speech, at a provider that only holds conversations. */
export function requireConversation(call: Call, { path }: Pick<UpstreamRequest, 'path'>): void {
  if (path !== '/realtime')
    throw new GatewayError(
      'endpoint_not_supported',
      `The channel for this model does not support ${call.wire.path}.`,
      { param: 'model' },
    );
}

/** Returns the function that opens sessions. */
export function overSockets(
  { base, headers }: SocketEndpoint,
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
