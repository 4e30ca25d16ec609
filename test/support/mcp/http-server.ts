import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  createMcpHandler,
  WebStandardStreamableHTTPServerTransport,
  type McpServer,
  type Server,
} from '@modelcontextprotocol/server';

/** An MCP server behind HTTP. */
export interface HttpMcpServer {
  readonly url: string;
  /** Headers of each request, oldest first. */
  readonly requests: {
    readonly method: string;
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
  }[];
  /** Number of sessions that are open. */
  sessions(): number;
  /** Forgets all sessions, as a server does that was restarted. */
  forget(): void;
  close(): Promise<void>;
}

/** Decides about a request before the server sees it; true: it was answered. */
export type Gatekeeper = (request: IncomingMessage, response: ServerResponse, url: string) => boolean;

/** Starts a server made with the official SDK: with sessions as of 2025-11-25, or without any as of 2026-07-28. */
export async function startMcpServer(
  build: () => McpServer | Server,
  { era = '2025', gate = () => false }: { readonly era?: '2025' | '2026'; readonly gate?: Gatekeeper } = {},
): Promise<HttpMcpServer> {
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const requests: HttpMcpServer['requests'] = [];
  const stateless = createMcpHandler(build, { legacy: 'reject' });
  const serve = async (request: Request): Promise<Response> => {
    if (era === '2026') return stateless.fetch(request);
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : open.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return new Response('There is no such session.', { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (made) => void open.set(made, transport),
      onsessionclosed: (closed) => void open.delete(closed),
    });
    await build().connect(transport);
    return transport.handleRequest(request);
  };
  const server = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    if (gate(request, response, url)) return;
    void answer(request, response, url).catch(() => response.destroy());
  });
  const answer = async (request: IncomingMessage, response: ServerResponse, url: string): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    requests.push({ method: request.method ?? '', headers: request.headers, body: body.toString() });
    const left = new AbortController();
    response.on('close', () => left.abort());
    const reply = await serve(
      new Request(new URL(request.url ?? '/', url), {
        method: request.method ?? 'GET',
        headers: Object.entries(request.headers).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, String(value)] as [string, string]],
        ),
        signal: left.signal,
        ...(body.length > 0 ? { body } : {}),
      }),
    );
    response.writeHead(reply.status, Object.fromEntries(reply.headers));
    if (reply.body === null) response.end();
    else
      Readable.fromWeb(reply.body as never)
        .on('error', () => response.destroy())
        .pipe(response);
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    sessions: () => open.size,
    forget: () => open.clear(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
