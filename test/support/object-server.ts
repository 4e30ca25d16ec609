import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A JSON object. */
export type Json = Record<string, unknown>;

/** Request that a fake provider received. */
export interface ObjectRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Sends JSON, or text or bytes unchanged. */
export type Answer = (status: number, value: unknown, headers?: Record<string, string>) => void;

/** Server of a fake provider. */
export interface ObjectServer {
  readonly url: string;
  readonly requests: ObjectRequest[];
  /** Responses wait for this promise. */
  delays: Promise<void> | undefined;
  close(): Promise<void>;
}

/** Starts a server on a free port that handles each request when its body is complete. */
export async function startObjectServer(
  handle: (request: ObjectRequest, answer: Answer) => void,
): Promise<ObjectServer> {
  const requests: ObjectRequest[] = [];
  const answerTo =
    (response: ServerResponse): Answer =>
    (status, value, headers = {}) => {
      const isText = typeof value === 'string' || Buffer.isBuffer(value);
      response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers });
      response.end(isText ? value : JSON.stringify(value));
    };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://provider');
      const received: ObjectRequest = {
        method: request.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks),
      };
      requests.push(received);
      const answer = (): void => handle(received, answerTo(response));
      if (started.delays === undefined) answer();
      else void started.delays.then(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const started: ObjectServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    delays: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return started;
}

/** The text of the one file in a form. */
export function fileInForm(body: Buffer): string {
  const text = body.toString('latin1');
  const head = text.indexOf('filename=');
  const from = text.indexOf('\r\n\r\n', head) + 4;
  return text.slice(from, text.indexOf('\r\n--', from));
}
