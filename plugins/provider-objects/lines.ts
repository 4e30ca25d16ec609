import { lastValueFrom, type Observable } from 'rxjs';
import { GatewayError } from 'sluice';
import { HeldBytes, inOrder, type Call } from 'sluice/internal';
import { isSliceOver, nextSlice } from './slices.ts';

/** Maximum length of a line of a batch, in bytes. */
export const longestLine = 16 * 1024 * 1024;

const carriageReturn = 0x0d;

/** Splits a file into its lines while it comes. Lines end with LF or CRLF; empty ones are left out. */
export class Lines {
  readonly #held = new HeldBytes();

  /** Number of bytes that are held of a line whose end has not come. */
  get held(): number {
    return this.#held.length;
  }

  /** Adds some bytes and yields each line that they complete. Throws for a line of more than 16 MiB. */
  *push(bytes: Buffer): Generator<Buffer, undefined> {
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(0x0a, from);
      this.#held.push(bytes.subarray(from, end < 0 ? bytes.length : end));
      if (this.#held.length > longestLine)
        throw new GatewayError('invalid_value', `The line has more than ${longestLine} bytes.`);
      if (end < 0) return undefined;
      const line = this.end();
      if (line !== undefined) yield line;
      from = end + 1;
    }
  }

  /** Bytes of the line that is not complete. */
  get rest(): Buffer {
    const rest = this.#held.take();
    this.#held.push(rest);
    return rest;
  }

  /** Returns the last line, which need not end with a line break; undefined if it is empty. */
  end(): Buffer | undefined {
    const line = this.#held.take();
    const text = line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
    return isBlank(text) ? undefined : text;
  }

  /** Releases what is held. */
  clear(): void {
    this.#held.take();
  }
}

/** Calls `work` for each line that a provider sends, in slices between which other callers run; the provider waits meanwhile. */
export async function eachLine(
  call: Call,
  bytes: Observable<Buffer>,
  work: (line: Buffer) => void,
): Promise<void> {
  const lines = new Lines();
  const read = inOrder<Buffer, never>(call, async (chunk) => {
    for (const line of lines.push(chunk)) {
      work(line);
      // oxlint-disable-next-line no-await-in-loop -- other callers run between two lines
      if (isSliceOver()) await nextSlice();
    }
    return [];
  });
  await lastValueFrom(bytes.pipe(read), { defaultValue: undefined });
  const last = lines.end();
  if (last !== undefined) work(last);
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === carriageReturn);
}
