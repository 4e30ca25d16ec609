import { createServer, request as send } from 'node:http';

/** Starts a proxy that adds an API key to each request, for clients that can send none. */
export async function startKeyAdder(
  target: string,
  key: string,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { hostname, port } = new URL(target);
  const server = createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    const passed = send(
      { hostname, port, path: request.url, method: request.method, headers, setHost: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.on('error', () => response.destroy()).pipe(response);
      },
    );
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const own = server.address() as { port: number };
  return {
    url: `http://localhost:${own.port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
