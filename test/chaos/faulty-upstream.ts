/**
 * A provider of its own process that speaks the four chat formats and misbehaves as the model's name says: `FAULT.…`, below the path
 * `/first`. Below `/second` it answers well. Faults can be healed, and break again, by name.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answering } from '../bench/answering.ts';
import { dialects, formats, tagIn, wordsOf } from './dialects.ts';
import { faultNamed, type Reply } from './faults.ts';
import { freePort } from '../support/free-port.ts';

/** State of the provider. */
export interface UpstreamState {
  readonly connections: number;
  /** Number of open responses. */
  readonly running: number;
  /** Requests below `/first`, by fault. */
  readonly requestCounts: Readonly<Record<string, number>>;
}

const sockets = new Set<object>();
const running = new Set<object>();
const requestCounts: Record<string, number> = {};
const healed = new Set<string>();

function answer(request: IncomingMessage, response: ServerResponse): void {
  running.add(response);
  response.on('close', () => running.delete(response));
  response.on('error', () => {});
  request.on('error', () => {});
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString();
    const path = request.url ?? '';
    const model =
      /\/models\/([^:/]+):/.exec(path)?.[1] ?? (JSON.parse(body) as { readonly model: string }).model;
    const name = decodeURIComponent(model).split('.')[0] ?? '';
    const first = path.startsWith('/first');
    if (first) requestCounts[name] = (requestCounts[name] ?? 0) + 1;
    const fault = faultNamed(first && !healed.has(name) ? name : 'plain');
    const reply = replyTo(path, model, body, response);
    void (fault.play ?? faultNamed('plain').play)?.(reply);
  });
}

function replyTo(path: string, model: string, body: string, response: ServerResponse): Reply {
  const format = formats.find((one) => path.includes(dialects[one].mark)) ?? 'chat-completions';
  const dialect = dialects[format];
  const stream = path.includes(':stream') || /"stream":\s*true/.test(body);
  const words = wordsOf(tagIn(body));
  if (!stream) {
    const text = JSON.stringify(dialect.whole(words.join(''), model));
    const bytes = Buffer.from(text);
    const early = bytes.subarray(0, Math.floor(bytes.length / 2));
    return { response, dialect, stream, pieces: [text], early, opening: '', word: ' ' };
  }
  const pieces = dialect.frames(words, model);
  const begin = pieces.length - dialect.ending - words.length;
  return {
    response,
    dialect,
    stream,
    pieces,
    early: Buffer.from(pieces.slice(0, begin + 2).join('')),
    opening: pieces.slice(0, begin).join(''),
    word: pieces[begin + 2] ?? '',
  };
}

const server = createServer(answer);
// Idle connections go soon, so that what is left over is seen soon.
server.keepAliveTimeout = 3000;
server.on('connection', (socket) => {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
});

/** Server that refuses connections until it is healed; its port is closed until then. */
const refusing = createServer(answer);
const refusingPort = await freePort();
const refuse = async (): Promise<void> => {
  if (!refusing.listening) return;
  await new Promise<void>((closed) => {
    refusing.close(() => closed());
    refusing.closeAllConnections();
  });
};
const listen = (port: number, which = server): Promise<void> =>
  new Promise((ready) => void which.listen(port, '127.0.0.1', 4096, () => ready()));

await listen(0);
answering(
  {
    state: (): UpstreamState => ({
      connections: sockets.size,
      running: running.size,
      requestCounts,
    }),
    async heal({ fault, isHealed }: { readonly fault: string; readonly isHealed: boolean }) {
      if (isHealed) healed.add(fault);
      else healed.delete(fault);
      if (fault === 'refused') await (isHealed ? listen(refusingPort, refusing) : refuse());
    },
  },
  {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refusing: `http://127.0.0.1:${refusingPort}`,
  },
);
