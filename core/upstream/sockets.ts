import type { ConnectionOptions } from 'node:tls';
import { WebSocket, type ClientOptions } from 'ws';
import type { ChannelOptions } from '../sdk/define.ts';
import type { UpstreamSockets } from '../sdk/http.ts';
import { ConnectAgent } from './connect-agent.ts';
import { compression } from './socket-close.ts';
import { UpstreamSocket, type SharedSockets, type UpstreamSocketOptions } from './socket.ts';

/** Returns the sockets of one channel. */
export function createUpstreamSockets(options: UpstreamSocketOptions): UpstreamSockets {
  const open = new Set<UpstreamSocket>();
  let timer: NodeJS.Timeout | undefined;
  const tick = (): void => {
    const now = performance.now();
    for (const one of open) one.tick(now);
  };
  const shared: SharedSockets = {
    options,
    opened(one) {
      open.add(one);
      timer ??= setInterval(
        tick,
        Math.max(10, Math.min(1000, options.ping / 3, options.stalled / 3)),
      ).unref();
    },
    closed(one) {
      open.delete(one);
      if (open.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
  const secure = secureOptions(options);
  const common = { ...commonOptions(options), ...secure };
  const { proxy, connectTimeout } = options;
  const agents =
    proxy === undefined
      ? undefined
      : {
          plain: new ConnectAgent(proxy, connectTimeout, undefined),
          secure: new ConnectAgent(proxy, connectTimeout, secure),
        };
  return {
    connect(call, { url, headers }) {
      const agent = url.startsWith('wss:') ? agents?.secure : agents?.plain;
      const socket = new WebSocket(url, {
        ...common,
        ...(agent === undefined ? {} : { agent }),
        headers: withHeaders(headers, options.headers),
      });
      return new UpstreamSocket(call, socket, shared).open();
    },
    close() {
      for (const one of open) one.abandon();
      clearInterval(timer);
      return Promise.resolve();
    },
  };
}

/** Returns the TLS options, in the form of both `ws` and Node. */
type Secure = Pick<ClientOptions & ConnectionOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized'> & {
  readonly servername?: string;
};

function commonOptions({ frame, compress, connectTimeout }: UpstreamSocketOptions): ClientOptions {
  return {
    maxPayload: frame,
    handshakeTimeout: connectTimeout,
    perMessageDeflate: compress.providers ? compression : false,
    followRedirects: false,
  };
}

function secureOptions({ tls }: UpstreamSocketOptions): Secure {
  const { ca, cert, key, servername, verify } = tls ?? {};
  return {
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    ...(verify === undefined ? {} : { rejectUnauthorized: verify }),
  };
}

/** Returns the channel's headers, overridden by the operator's. */
function withHeaders(
  own: Readonly<Record<string, string>>,
  { set = {}, remove = [] }: NonNullable<ChannelOptions['headers']> = {},
): Record<string, string> {
  const headers: Record<string, string> = { ...own };
  for (const name of remove) delete headers[name.toLowerCase()];
  for (const [name, value] of Object.entries(set)) headers[name.toLowerCase()] = value;
  return headers;
}
