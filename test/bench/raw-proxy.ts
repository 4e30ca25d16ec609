/** The least a proxy on Node can cost: `node:http` in front, undici's dispatch behind, the bytes through and nothing else. */
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool, type Dispatcher } from 'undici';
import { answering, measuring } from './answering.ts';

const pool = new Pool(process.env.BENCH_UPSTREAM ?? '');
const gone = new Error('The client has left.');

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  let upstream: Dispatcher.DispatchController | undefined;
  const onClose = (): void => upstream?.abort(gone);
  const onDrain = (): void => upstream?.resume();
  response.on('close', onClose);
  response.on('drain', onDrain);
  pool.dispatch(
    { path: request.url ?? '/', method: 'POST', headers: { 'content-type': 'application/json' }, body },
    {
      onRequestStart(controller) {
        upstream = controller;
      },
      onResponseStart(_controller, status, headers) {
        response.writeHead(status, headers as OutgoingHttpHeaders);
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause();
      },
      onResponseEnd() {
        response.off('close', onClose);
        response.off('drain', onDrain);
        response.end();
      },
      onResponseError: () => response.destroy(),
    },
  );
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => forward(request, Buffer.concat(chunks), response));
});

server.listen(0, '127.0.0.1', () => {
  answering(measuring, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
