/** Puts the client's name of a model into the bytes of a reply, and finds its usage there. */
import { type Usage, stringEnd } from 'sluice';
import { type Codec, splitSse } from 'sluice/channel-kit';
import { eachMember, Nesting, valueEnd } from 'sluice/internal';

const quote = 0x22;
const nothing = Buffer.alloc(0);

/** The longest piece of a reply, in bytes, that may be a key with a model's name: as much is held back at most. */
const longestName = 1024;

/** Returns the position of the value of the only top-level `"model"` in a JSON object's bytes, with quotes. Undefined for none or several. */
export function findModel(bytes: Buffer): { readonly start: number; readonly end: number } | undefined {
  let found: { readonly start: number; readonly end: number } | undefined;
  let count = 0;
  const isObject = eachMember(bytes, ({ name, value, end }) => {
    if (name !== 'model') return;
    count += 1;
    if (bytes[value] === quote) found = { start: value, end };
  });
  return isObject && count === 1 ? found : undefined;
}

function valueStart(bytes: Buffer, from: number): number {
  let index = from;
  while (
    bytes[index] === 0x20 ||
    bytes[index] === 0x3a ||
    bytes[index] === 0x0a ||
    bytes[index] === 0x0d ||
    bytes[index] === 0x09
  )
    index += 1;
  return index;
}

/** Returns frames with the name of the model replaced in each, as in {@link Renamer}; the same buffer when none contains it. */
export function renamed(run: Buffer, key: string, name: string): Buffer {
  const mark = `"${key}"`;
  if (!run.includes(mark)) return run;
  const renamer = new Renamer(key, name);
  const frames = splitSse(run).flatMap((frame) => [renamer.push(frame), renamer.end()]);
  return frames.length === 2 && frames[1]?.length === 0 ? (frames[0] ?? run) : Buffer.concat(frames);
}

/**
 * Puts another name on a reply while it passes, however it is cut: the string behind `"key":` at the top of each JSON object and one level
 * below (a message, a response). Deeper ones are content. Holds nothing back but a key and a name that are still incomplete.
 */
export class Renamer {
  readonly #key: string;
  readonly #name: Buffer;
  #held: Buffer | undefined;
  readonly #nesting = new Nesting();

  constructor(key: string, name: string) {
    this.#key = `"${key}"`;
    this.#name = Buffer.from(JSON.stringify(name));
  }

  push(chunk: Buffer): Buffer {
    const bytes = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    const parts: Buffer[] = [];
    let from = 0;
    for (let index = 0; index < bytes.length; index += 1) {
      const span = bytes[index] === quote && this.#mayBeKey() ? this.#nameAt(bytes, index) : undefined;
      if (span === 'cut') {
        this.#held = bytes.subarray(index);
        parts.push(bytes.subarray(from, index));
        return Buffer.concat(parts);
      }
      if (span === undefined) index = this.#nesting.read(bytes, index);
      else {
        parts.push(bytes.subarray(from, span.start), this.#name);
        from = span.end;
        index = span.end - 1;
      }
    }
    if (parts.length === 0) return bytes;
    parts.push(bytes.subarray(from));
    return Buffer.concat(parts);
  }

  /** Returns the held bytes at the end of a response, and resets. */
  end(): Buffer {
    const rest = this.#held ?? nothing;
    this.#held = undefined;
    this.#nesting.reset();
    return rest;
  }

  /** Returns true outside strings at the top of an object and one level below. */
  #mayBeKey(): boolean {
    const { depth, isInString } = this.#nesting;
    return !isInString && (depth === 1 || depth === 2);
  }

  /** Returns the position of the name if the string at `at` is the key and its value is a string; `cut` while more bytes are needed. */
  #nameAt(bytes: Buffer, at: number): { readonly start: number; readonly end: number } | 'cut' | undefined {
    const key = bytes.toString('latin1', at, at + this.#key.length);
    if (key !== this.#key) return this.#key.startsWith(key) ? 'cut' : undefined;
    const unclear = bytes.length - at < longestName ? 'cut' : undefined;
    const start = valueStart(bytes, at + key.length);
    if (start >= bytes.length) return unclear;
    // A value that reads like the key has no colon behind it.
    if (start === at + key.length || bytes[start] !== quote) return undefined;
    const end = stringEnd(bytes, start);
    return end < 0 ? unclear : { start, end: end + 1 };
  }
}

/** Maximum number of candidates in a piece of a whole response that are read for its usage. A piece with more is read no further. */
const mostUsages = 32;

/** Returns the last usage object in a part of a response, without parsing the rest. */
export function usageIn(piece: Buffer, codec: Codec): Usage | undefined {
  let tried = 0;
  for (const mark of codec.marks.usage) {
    const key = mark.slice(0, mark.indexOf('"', 1) + 1);
    for (let at = piece.lastIndexOf(mark); at >= 0; at = at === 0 ? -1 : piece.lastIndexOf(mark, at - 1)) {
      const open = valueStart(piece, at + key.length);
      if (piece[open] !== 0x7b) continue;
      tried += 1;
      if (tried > mostUsages) return undefined;
      const end = valueEnd(piece, open);
      if (end === undefined) continue;
      const usage = codec.usageTap().read(`{${key}:${piece.toString('utf8', open, end)}}`);
      if (usage !== undefined) return usage;
    }
  }
  return undefined;
}
