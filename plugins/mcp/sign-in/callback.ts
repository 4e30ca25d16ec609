/** Receives the browser of a person who has signed in. */
import { createServer, type Server } from 'node:http';

/** Path to which the authorization server sends the browser. */
const path = '/callback';

/** A listener on this machine's own address. */
export interface Callback {
  /** URL to which the authorization server redirects the browser. */
  readonly url: string;
  /** Resolves with the parameters of the first request that has the state. Rejects when `signal` aborts. */
  answer(state: string, signal: AbortSignal): Promise<URLSearchParams>;
  close(): Promise<void>;
}

/** Opens a listener. Port 0 is any free one. */
export async function openCallback(port: number): Promise<Callback> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: opened } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${opened}${path}`,
    answer: (state, signal) => answered(server, state, signal),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answered(server: Server, state: string, signal: AbortSignal): Promise<URLSearchParams> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('Nobody has signed in in time.')), {
      once: true,
    });
    server.on('request', (request, response) => {
      const url = URL.parse(request.url ?? '', 'http://127.0.0.1');
      // Other web pages can request this address too, but do not know the state.
      if (url?.pathname !== path || url.searchParams.get('state') !== state) {
        response.writeHead(404).end();
        return;
      }
      response
        .writeHead(200, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
        .end('Done. You can close this page and go back to the terminal.\n');
      resolve(url.searchParams);
    });
  });
}
