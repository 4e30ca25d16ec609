/**
 * A provider that answers at once, in the format of the path. What it says is in the model's name:
 *
 * - `…small`, `…large`: a short whole reply, one of 50 KB
 * - `…paced-N-MS`: a stream of N deltas, one each MS milliseconds; `…open-MS`: one that never ends
 * - `…timed-N-MS`: the same, and each delta tells when it was sent, in microseconds of the machine's clock
 * - `…fast-N`: a stream of N deltas as fast as they can be sent, each on its own; `…tool-N`: the same with the arguments of a tool call
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { answering } from './answering.ts';
import type { Wire } from './inputs.ts';
import { shapes, word, type StreamShapes } from './replies.ts';
import { sourceText } from './sessions.ts';

const server = createServer((request, response) => {
  void modelIn(request).then((model) => reply(response, wireOf(request.url ?? ''), model));
});

function wireOf(path: string): Wire {
  if (path.startsWith('/v1/messages')) return 'messages';
  if (path.startsWith('/v1/responses')) return 'responses';
  return path.startsWith('/v1beta/') ? 'generateContent' : 'chat';
}

/** Bodies are not parsed: it would take longer than what is measured. */
const modelMember = /"model"\s*:\s*"([^"]+)"/;

async function modelIn(request: IncomingMessage): Promise<string> {
  const [, inPath] = /\/models\/([^:]+):/.exec(request.url ?? '') ?? [];
  let model = inPath;
  const rest: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (model !== undefined) continue;
    if (rest.length === 0) [, model] = modelMember.exec(chunk.toString('latin1', 0, 1000)) ?? [];
    if (model === undefined) rest.push(chunk);
  }
  if (model !== undefined) return decodeURIComponent(model);
  const sent = Buffer.concat(rest);
  const at = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
  return modelMember.exec(at.toString('latin1', Math.max(0, at.indexOf('"model"'))))?.[1] ?? 'small';
}

const wholes = new Map<string, Buffer>();

function reply(response: ServerResponse, wire: Wire, model: string): void {
  const [, kind = '', first = '0', second = '0'] =
    /\b(paced|timed|open|fast|tool)-(\d+)(?:-(\d+))?$/.exec(model) ?? [];
  if (kind === '') {
    const name = `${wire} ${model}`;
    let body = wholes.get(name);
    if (body === undefined) {
      const text = model.endsWith('large') ? sourceText(55_000) : sourceText(100);
      body = Buffer.from(JSON.stringify(shapes[wire].whole(model, text)));
      wholes.set(name, body);
    }
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.end(body);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const shape = kind === 'tool' ? shapes[wire].tool : shapes[wire].text;
  if (kind === 'open') paced(response, shape, model, Infinity, Number(first), plain);
  else if (kind === 'paced' || kind === 'timed')
    paced(response, shape, model, Number(first), Number(second), kind === 'timed' ? stamped : plain);
  else fast(response, shape, model, Number(first));
}

const plain = (): string => `${word.slice(1)} `;
const stamped = (): string => `${word.slice(1)} ${process.hrtime.bigint() / 1000n} `;

function paced(
  response: ServerResponse,
  shape: StreamShapes,
  model: string,
  count: number,
  pace: number,
  text: () => string,
): void {
  response.write(shape.begin(model) + shape.delta(model, text()));
  let sent = 1;
  const timer = setInterval(() => {
    sent += 1;
    response.write(shape.delta(model, text()));
    if (sent < count) return;
    clearInterval(timer);
    response.end(shape.end(model, count));
  }, pace);
  response.on('close', () => clearInterval(timer));
}

function fast(response: ServerResponse, shape: StreamShapes, model: string, count: number): void {
  const delta = shape.delta(model, plain());
  response.write(shape.begin(model));
  let sent = 0;
  const next = (): void => {
    sent += 1;
    response.write(delta);
    if (sent < count) setImmediate(next);
    else response.end(shape.end(model, count));
  };
  next();
}

server.listen(Number(process.env.BENCH_PORT ?? 0), '127.0.0.1', () => {
  answering({}, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
