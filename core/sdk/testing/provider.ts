/** HTTP server for tests that records requests and answers them by a script: a provider, or a service that a plugin calls. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A request that the server received.
 *
 * @example
 * expect(provider.requests[0]?.headers.authorization).toBe('Bearer the-key');
 */
export interface SeenRequest {
  readonly method: string;
  /** With query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  /** Resolves when the gateway has closed this request's connection or the answer was finished. */
  readonly closed: Promise<void>;
}

/**
 * A running scripted server.
 *
 * @example
 * const channel = openai({ key: 'the-key', baseUrl: provider.url });
 */
export interface ScriptedUpstream {
  readonly url: string;
  readonly requests: SeenRequest[];
  close(): Promise<void>;
}

/**
 * Starts the server on a free port; `script` answers each request once its body has been read.
 *
 * @example
 * const provider = await startUpstream((request, response) => void response.writeHead(429, { 'retry-after': '2' }).end());
 */
export async function startUpstream(
  script: (request: SeenRequest, response: ServerResponse, count: number) => void | Promise<void>,
): Promise<ScriptedUpstream> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    response.on('error', () => {});
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const seen: SeenRequest = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        closed,
      };
      requests.push(seen);
      void script(seen, response, requests.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
