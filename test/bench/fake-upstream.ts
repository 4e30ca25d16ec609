/**
 * A provider that answers at once: chat completions, messages and Responses, by the path; what it says is in the model's name.
 * `…small`: a short whole reply. `…large`: one of 50 KB. `…paced-N-MS`: a stream of N chunks, one each MS milliseconds.
 * `…open-MS`: a stream that never ends.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answering } from './answering.ts';
import { chat, messages, responses, type Shapes } from './replies.ts';

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { model } = JSON.parse(Buffer.concat(chunks).toString()) as { model: string };
    reply(response, shapes[request.url ?? ''] ?? chat, model);
  });
});

const shapes: Readonly<Record<string, Shapes>> = { '/v1/messages': messages, '/v1/responses': responses };

function reply(response: ServerResponse, said: Shapes, model: string): void {
  const paced = /paced-(\d+)-(\d+)$/.exec(model);
  const open = /open-(\d+)$/.exec(model);
  if (paced !== null) stream(response, said, model, Number(paced[1]), Number(paced[2]));
  else if (open !== null) stream(response, said, model, Infinity, Number(open[1]));
  else {
    const body = Buffer.from(JSON.stringify(said.whole(model, model.endsWith('large') ? 50_000 : 100)));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.end(body);
  }
}

function stream(response: ServerResponse, said: Shapes, model: string, count: number, pace: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(said.begin(model));
  let sent = 0;
  const timer = setInterval(() => {
    sent += 1;
    response.write(said.delta(model));
    if (sent < count) return;
    clearInterval(timer);
    response.end(said.end(model, count));
  }, pace);
  response.on('close', () => clearInterval(timer));
}

server.listen(0, '127.0.0.1', () => {
  answering({}, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
