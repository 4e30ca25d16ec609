import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

/** A proxy that opens tunnels where a test lets it. */
export interface TestProxy {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** Requests that it received. */
  readonly requests: readonly IncomingMessage[];
  /** Number of open tunnels. */
  open(): number;
  close(): Promise<void>;
}

/** Starts a proxy on a free port. `allows` gives the status for a CONNECT; only 2xx opens a tunnel, undefined leaves it without an answer. Every tunnel leads to `port`. */
export async function startProxy(
  port: number,
  allows: (request: IncomingMessage) => number | undefined = () => 200,
): Promise<TestProxy> {
  const requests: IncomingMessage[] = [];
  const tunnels = new Set<Socket>();
  const clients = new Set<Socket>();
  const server = createServer((_, response) => void response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    requests.push(request);
    client.on('error', () => {});
    clients.add(client);
    client.on('close', () => clients.delete(client));
    const status = allows(request);
    if (status === undefined || status < 200 || status > 299) {
      if (status !== undefined) client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const upstream = connect(port, '127.0.0.1');
    tunnels.add(client);
    client.on('close', () => {
      tunnels.delete(client);
      upstream.destroy();
    });
    upstream.on('error', () => client.destroy());
    upstream.on('close', () => client.destroy());
    upstream.on('connect', () => {
      client.write(`HTTP/1.1 ${status} Connection established\r\n\r\n`);
      upstream.pipe(client);
      client.pipe(upstream);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open: () => tunnels.size,
    close: () =>
      new Promise((resolve) => {
        for (const client of clients) client.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
