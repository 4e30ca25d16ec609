/** A provider in a thread of its own, so that its work is not measured: answers each request with the reply that its words ask for. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { writeSse } from '../../core/formats/_shared/sse.ts';
import { chatCodecOf } from './codecs.ts';
import { replyShapes } from './replies.ts';

const paths: readonly (readonly [RegExp, string])[] = [
  [/chat\/completions/, 'chat-completions'],
  [/messages/, 'messages'],
  [/responses/, 'responses'],
  [/generateContent/i, 'generate-content'],
];

/** The latest replies: a row asks for the same few many times. */
const replies = new Map<string, string>();
const mostReplies = 8;

/** The reply of a format: a stream or a whole, of a shape and a size. */
function replyOf(format: string, shape: string, size: number, stream: boolean): string {
  const name = `${format} ${shape} ${size} ${stream}`;
  let reply = replies.get(name);
  if (reply !== undefined) return reply;
  const codec = chatCodecOf(format);
  const events = replyShapes.find((one) => one.name === shape)?.make(size) ?? [];
  const context = {
    model: 'm',
    body: { stream_options: { include_usage: true } },
    requestId: 'req_1',
    created: 1_760_000_000,
    inputEstimate: 7,
    drop: () => {},
  };
  if (stream) {
    const encoder = codec.encodeStream?.(context);
    const frames = [...events.flatMap((event) => encoder?.event(event) ?? []), ...(encoder?.end() ?? [])];
    reply = frames.map(writeSse).join('');
  } else {
    const encoder = codec.encodeWhole(context);
    for (const event of events) encoder.event(event);
    reply = JSON.stringify(encoder.end());
  }
  const [oldest] = replies.keys();
  if (oldest !== undefined && replies.size >= mostReplies) replies.delete(oldest);
  replies.set(name, reply);
  return reply;
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const url = request.url ?? '';
    const format = paths.find(([path]) => path.test(url))?.[1] ?? 'chat-completions';
    const [, shape = 'tiny pieces of text', size = '1'] =
      /<<reply: ([^>:]*): (\d+)>>/.exec(body.toString('latin1')) ?? [];
    const stream = url.includes('stream') || /"stream":\s*true/.test(body.toString('latin1'));
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    response.end(replyOf(format, shape, Number(size), stream));
  });
});
server.listen(0, '127.0.0.1', () => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
  parentPort?.postMessage((server.address() as AddressInfo).port);
});
