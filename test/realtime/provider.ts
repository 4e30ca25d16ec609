/** The provider of the proof, in a process of its own: started by `fork`, it tells its address, and what it saw when it is asked. */
import { randomBytes } from 'node:crypto';
import type { WebSocket } from 'ws';
import { responseDone, startRealtimeUpstream } from '../support/realtime-upstream.ts';
import { Trace, type Traced } from './trace.ts';

/** Report of the provider about one session, with the number that its client sent. */
export interface SessionReport {
  readonly number: number;
  readonly got: Traced;
  readonly sent: Traced;
  readonly answers: number;
  readonly tokens: number;
}

interface Talk {
  number: number;
  readonly got: Trace;
  readonly sent: Trace;
  answers: number;
  tokens: number;
}

const talks = new Map<WebSocket, Talk>();
const sound = randomBytes(3600).toString('base64');
const block = randomBytes(64 * 1024);
/** Milliseconds between the pieces of an answer, and how many there are. */
const pace = 40;
const pieces = 12;

function send(socket: WebSocket, talk: Talk, data: Buffer, binary = false): void {
  talk.sent.add(data, binary);
  socket.send(data, { binary });
}

function sendEvent(socket: WebSocket, talk: Talk, event: unknown): void {
  send(socket, talk, Buffer.from(JSON.stringify(event)));
}

async function speak(socket: WebSocket, talk: Talk): Promise<void> {
  talk.answers += 1;
  const id = `resp_${talk.number}_${talk.answers}`;
  sendEvent(socket, talk, { type: 'response.created', event_id: 'e', response: { id } });
  for (let piece = 0; piece < pieces; piece += 1) {
    await new Promise((resolve) => setTimeout(resolve, pace));
    sendEvent(socket, talk, {
      type: 'response.output_audio.delta',
      event_id: 'e',
      response_id: id,
      delta: sound,
      piece,
    });
    if (piece % 4 === 0) send(socket, talk, block.subarray(0, 1000 + piece), true);
  }
  const input = 100 + ((talk.number * 7 + talk.answers) % 50);
  const output = 20 + ((talk.number + talk.answers) % 30);
  talk.tokens += input + output;
  sendEvent(socket, talk, responseDone(id, input, output));
}

/** As much as is taken, until the client says that it is enough. */
async function flood(socket: WebSocket, talk: Talk, mebibytes: number): Promise<void> {
  for (let sent = 0; sent < mebibytes * 16 && socket.readyState === socket.OPEN;) {
    if (socket.bufferedAmount > 1024 * 1024) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      continue;
    }
    send(socket, talk, block, true);
    sent += 1;
  }
  sendEvent(socket, talk, { type: 'flooded' });
}

const upstream = await startRealtimeUpstream(({ socket }, message) => {
  if (message === undefined) {
    talks.set(socket, { number: -1, got: new Trace(), sent: new Trace(), answers: 0, tokens: 0 });
    return;
  }
  const talk = talks.get(socket);
  if (talk === undefined) return;
  talk.got.add(message.data, message.binary);
  if (message.binary || message.data.length > 1000) return;
  const event = JSON.parse(message.data.toString()) as { type: string; number?: number; mebibytes?: number };
  if (event.type === 'hello') talk.number = event.number ?? -1;
  else if (event.type === 'response.create') void speak(socket, talk);
  else if (event.type === 'flood') void flood(socket, talk, event.mebibytes ?? 1);
});

process.on('message', () => {
  const reports: SessionReport[] = [...talks.values()].map(({ number, got, sent, answers, tokens }) => ({
    number,
    got: got.summary(),
    sent: sent.summary(),
    answers,
    tokens,
  }));
  process.send?.({ reports });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: upstream.url });
