/** The least that a proxy on Node costs: `node:http` in front, undici behind, the bytes through and nothing else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { answering } from './answering.ts';

const pool = new Pool(process.env.BENCH_UPSTREAM ?? '');

const server = createServer((request, response) => {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  for (const name of ['content-length', 'content-encoding'] as const) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  pool
    .stream(
      { path: request.url ?? '/', method: 'POST', headers, body: request, opaque: response },
      ({ statusCode, headers: answered }) => {
        response.writeHead(statusCode, answered);
        return response;
      },
    )
    .catch(() => response.destroy());
});

server.listen(0, '127.0.0.1', () => {
  answering({}, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
