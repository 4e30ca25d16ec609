/** Replies that pass through except for members that are renamed. */
import { parseObject, WholeBytes } from 'sluice';
import { parseSse, writeSse, splitSse } from 'sluice/channel-kit';
import { type Call, type Target } from 'sluice/internal';

type Words = NonNullable<ReturnType<typeof wordsOf>>;

/** Returns the words that must change in the response to a call that passes through; undefined for most calls. */
export function wordsOf({ codec, body }: Call, { traits }: Target) {
  return codec.replyWords?.(traits, body);
}

/** Returns the whole frames of a run of a stream in the words that clients know: the same bytes where nothing changes. */
export function respelledRun(run: Buffer, words: Words): Buffer {
  if (!words.readsAll && !isMarked(run, words)) return run;
  const frames: Buffer[] = [];
  let changed = false;
  for (const frame of splitSse(run)) {
    const respelled = words.readsAll || isMarked(frame, words) ? respelledFrame(frame, words) : frame;
    changed ||= respelled !== frame;
    frames.push(respelled);
  }
  return changed ? Buffer.concat(frames) : run;
}

function respelledFrame(bytes: Buffer, words: Words): Buffer {
  const [frame, ...others] = parseSse(bytes);
  const body = frame === undefined || others.length > 0 ? undefined : parseObject(frame.data);
  if (frame === undefined || body === undefined) return bytes;
  const json = words.frame(body);
  return json === body ? bytes : Buffer.from(writeSse({ ...frame, json }));
}

function isMarked(bytes: Buffer, { marks }: Words): boolean {
  return marks.some((mark) => bytes.includes(mark));
}

/** Reads the rest of a response. */
interface Sink {
  push(chunk: Buffer): void;
  end(): void;
}

/** A whole reply that may have to change: it goes on when all of it is there. */
export class RespelledWhole implements Sink {
  readonly #words: Words;
  readonly #next: Sink;
  readonly #whole: WholeBytes;

  constructor(words: Words, next: Sink, limit?: number) {
    this.#words = words;
    this.#next = next;
    this.#whole = new WholeBytes(limit);
  }

  push(chunk: Buffer): void {
    this.#whole.push(chunk);
  }

  end(): void {
    const bytes = this.#whole.take();
    this.#next.push(this.#respelled(bytes));
    this.#next.end();
  }

  #respelled(bytes: Buffer): Buffer {
    if (!this.#words.readsAll && !isMarked(bytes, this.#words)) return bytes;
    const body = parseObject(bytes.toString('utf8'));
    const json = body && this.#words.whole(body);
    return json === body || json === undefined ? bytes : Buffer.from(JSON.stringify(json));
  }
}
