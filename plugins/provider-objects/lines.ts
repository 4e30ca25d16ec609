/** Splits batch files and results of batches into lines while they stream, with a maximum line length. */
import { lastValueFrom, type Observable } from 'rxjs';
import { GatewayError, type Call, HeldBytes } from 'sluice';
import { inOrder } from 'sluice/internal';
import { isSliceOver, nextSlice } from './slices.ts';

/** Maximum length of a line of a batch, in bytes. */
export const longestLine = 16 * 1024 * 1024;

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const noBytes = Buffer.alloc(0);

/** Splits a file into lines: call `add` with some bytes, then `next` until it returns undefined. */
export class Lines {
  /** Bytes of an incomplete line. */
  readonly #held = new HeldBytes();
  /** Bytes behind the last line that was taken. */
  #behind: Buffer = noBytes;

  /** Number of bytes of which no line was taken. */
  get held(): number {
    return this.#held.length + this.#behind.length;
  }

  /** Adds some bytes. All lines before them must have been taken. */
  add(bytes: Buffer): void {
    this.#behind = bytes;
  }

  /** Returns the next line, with its line break; undefined where its end has not come. Throws for a line of more than 16 MiB. */
  next(): Buffer | undefined {
    const end = this.#behind.indexOf(lineFeed) + 1;
    const length = end === 0 ? this.#behind.length : end;
    this.#held.push(this.#behind.subarray(0, length));
    this.#behind = this.#behind.subarray(length);
    if (this.#held.length > longestLine)
      throw new GatewayError('invalid_value', `The line has more than ${longestLine} bytes.`);
    return end === 0 ? undefined : this.#held.take();
  }

  /** Bytes of the line that is not complete, when all others were taken. */
  get rest(): Buffer {
    const rest = this.#held.take();
    this.#held.push(rest);
    return rest;
  }

  /** Returns all bytes of which no line was taken. Nothing is held any more. */
  take(): Buffer {
    this.#held.push(this.#behind);
    this.#behind = noBytes;
    return this.#held.take();
  }
}

/** Returns what is in a line, without its line break (LF or CRLF); undefined for one that is empty. */
export function contentOf(line: Buffer): Buffer | undefined {
  let end = line.length;
  if (line[end - 1] === lineFeed) end -= 1;
  if (line[end - 1] === carriageReturn) end -= 1;
  const content = line.subarray(0, end);
  return isBlank(content) ? undefined : content;
}

/** Calls `work` for each line that a provider sends, in time slices between which other calls run, with backpressure to the provider. */
export async function eachLine(
  call: Call,
  bytes: Observable<Buffer>,
  work: (line: Buffer) => void,
): Promise<void> {
  const lines = new Lines();
  const read = inOrder<Buffer, never>(call, async (chunk) => {
    lines.add(chunk);
    for (let line = lines.next(); line !== undefined; line = lines.next()) {
      const content = contentOf(line);
      if (content !== undefined) work(content);
      // oxlint-disable-next-line no-await-in-loop -- other callers run between two lines
      if (isSliceOver()) await nextSlice();
    }
    return [];
  });
  await lastValueFrom(bytes.pipe(read), { defaultValue: undefined });
  const last = contentOf(lines.take());
  if (last !== undefined) work(last);
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === carriageReturn);
}
