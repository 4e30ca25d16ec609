import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { patience } from '../support/patience.ts';
import type { SessionReport } from './provider.ts';
import { Trace, type Traced } from './trace.ts';

/** Milliseconds between pieces of audio, and between requests for a response. */
const pace = { sound: 100, answer: 1500 };

/** A client that talks and listens at once, and remembers what went both ways. */
export class Speaker {
  readonly number: number;
  readonly #socket: WebSocket;
  readonly #sent = new Trace();
  readonly #got = new Trace();
  readonly #sound: Buffer;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #seen = new Set<string>();
  #requested = 0;
  #answered = 0;
  #code = 0;

  private constructor(socket: WebSocket, number: number) {
    this.#socket = socket;
    this.number = number;
    this.#sound = Buffer.from(
      JSON.stringify({ type: 'input_audio_buffer.append', audio: randomBytes(3600).toString('base64') }),
    );
    socket.on('error', () => {});
    socket.on('close', (code) => {
      this.#code = code;
      for (const timer of this.#timers) clearInterval(timer);
    });
    socket.on('message', (data: Buffer, binary) => {
      this.#got.add(data, binary);
      if (binary) return;
      const type = /"type":"([^"]*)"/.exec(data.toString('latin1', 0, 100))?.[1] ?? '';
      this.#seen.add(type);
      if (type === 'response.done') this.#answered += 1;
    });
  }

  static async open(url: string, key: string, number: number): Promise<Speaker> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/realtime?model=talk`, {
      headers: { authorization: `Bearer ${key}` },
      perMessageDeflate: false,
    });
    const speaker = new Speaker(socket, number);
    await once(socket, 'open');
    speaker.sendEvent({ type: 'hello', number });
    return speaker;
  }

  sendEvent(event: unknown): void {
    this.#send(Buffer.from(JSON.stringify(event)), false);
  }

  /** Starts to send: audio all the time, now and then bytes, and requests for a response. */
  talk(): void {
    let count = 0;
    const requestResponse = (): void => {
      if (this.#requested > this.#answered) return;
      this.#requested += 1;
      this.sendEvent({ type: 'response.create' });
    };
    const begin = (): void => {
      this.#timers.push(
        setInterval(() => {
          count += 1;
          this.#send(this.#sound, false);
          if (count % 10 === 0) this.#send(this.#sound.subarray(0, 100 + (count % 1000)), true);
        }, pace.sound),
        setInterval(requestResponse, pace.answer),
      );
      requestResponse();
    };
    // Not all at the same moment.
    this.#timers.push(setTimeout(begin, (this.number * 37) % pace.sound));
  }

  /** Reads nothing from now on. */
  stall(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  async until(type: string): Promise<void> {
    await this.#wait(() => this.#seen.has(type));
  }

  /** Says nothing more, and waits for its last answer. */
  async finish(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#wait(() => this.#answered >= this.#requested);
    // What was sent last is still under way to the provider.
    await new Promise((resolve) => setTimeout(resolve, 500));
  }

  /** The code that its connection was closed with. */
  async close(): Promise<number> {
    if (this.#code > 0) return this.#code;
    this.#socket.close(1000);
    await this.#wait(() => this.#code > 0);
    return this.#code;
  }

  /** Directions in which the provider saw something else, and how many frames either side saw. */
  damage(report: SessionReport | undefined): readonly string[] {
    if (report === undefined) return ['to the provider: no report', 'to the client: no report'];
    const [sent, got] = [this.#sent.summary(), this.#got.summary()];
    return [
      ...(same(sent, report.got)
        ? []
        : [`to the provider: ${sent.frames} frames, ${report.got.frames} came`]),
      ...(same(got, report.sent) ? [] : [`to the client: ${report.sent.frames} frames, ${got.frames} came`]),
    ];
  }

  #send(data: Buffer, binary: boolean): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#sent.add(data, binary);
    this.#socket.send(data, { binary });
  }

  async #wait(done: () => boolean, ms: number = patience.wait): Promise<void> {
    const end = performance.now() + ms;
    while (!done() && performance.now() < end && this.#code === 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function same(one: Traced, other: Traced): boolean {
  return one.hash === other.hash && one.frames === other.frames;
}
