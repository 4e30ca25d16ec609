/** Streams that are open while their gateway is killed. */
import { setTimeout as pause } from 'node:timers/promises';
import { voices } from '../reload/streams.ts';

/** Chunks of each stream. With the pace of the demo they take longer than a gateway takes to be killed. */
const chunks = 1_500;
/** Longest time in which clients must notice that their gateway has gone. */
const noticeMs = 10_000;

/** Streams of which each has sent a first chunk. */
export class OpenStreams {
  readonly #ends: readonly Promise<'cut' | 'ended'>[];
  readonly #stop = new AbortController();

  private constructor(readers: readonly ReadableStreamDefaultReader<Uint8Array>[], stop: AbortController) {
    this.#stop = stop;
    this.#ends = readers.map((reader) => readToEnd(reader));
  }

  /** Opens one stream for each key, in turn in each format, straight at a gateway. Rejects when one is refused. */
  static async open(url: string, keys: readonly string[]): Promise<OpenStreams> {
    const stop = new AbortController();
    const readers = await Promise.all(
      keys.map(async (key, turn) => {
        const voice = voices[turn % voices.length] ?? voices[0]!;
        const response = await fetch(`${url}${voice.path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...voice.headers },
          body: JSON.stringify(voice.body(`!chunks=${chunks}`)),
          signal: stop.signal,
        });
        if (!response.ok || response.body === null)
          throw new Error(`${voice.path}: ${response.status} ${(await response.text()).slice(0, 300)}`);
        const reader = response.body.getReader();
        await reader.read();
        return reader;
      }),
    );
    return new OpenStreams(readers, stop);
  }

  /** Returns the errors after the gateway was killed: streams that ended as if they were complete, or that have not ended. */
  async problems(): Promise<readonly string[]> {
    const late = pause(noticeMs, 'open' as const, { ref: false });
    const ends = await Promise.all(this.#ends.map((end) => Promise.race([end, late])));
    this.#stop.abort();
    const count = (which: string): number => ends.filter((end) => end === which).length;
    const [ended, open] = [count('ended'), count('open')];
    if (ended + open === 0) return [];
    return [
      `of ${ends.length} streams of the killed gateway ${ended} ended as if whole, ${open} stayed open`,
    ];
  }
}

async function readToEnd(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<'cut' | 'ended'> {
  try {
    // oxlint-disable-next-line no-await-in-loop -- a stream is read in order
    while (!(await reader.read()).done);
    return 'ended';
  } catch {
    return 'cut';
  }
}
