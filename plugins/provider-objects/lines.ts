import { GatewayError } from 'sluice';
import { HeldBytes } from 'sluice/internal';

/** Longer lines are no line of a batch, in bytes. */
const longestLine = 16 * 1024 * 1024;

/** Cuts a file into its lines while it comes, and gives each that has something in it. Throws at a line of more than 16 MiB. */
export class Lines {
  readonly #held = new HeldBytes();
  readonly #line: (text: string) => void;

  constructor(line: (text: string) => void) {
    this.#line = line;
  }

  push(bytes: Buffer): void {
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(0x0a, from);
      this.#held.push(bytes.subarray(from, end < 0 ? bytes.length : end));
      if (this.#held.length > longestLine)
        throw new GatewayError('upstream_error', `A line has more than ${longestLine} bytes.`);
      if (end < 0) return;
      this.end();
      from = end + 1;
    }
  }

  /** What has come of a line that is not complete. */
  get rest(): Buffer {
    const rest = this.#held.take();
    this.#held.push(rest);
    return rest;
  }

  /** The last line need not end with a line break. */
  end(): void {
    const text = this.#held.take().toString().trim();
    if (text !== '') this.#line(text);
  }
}
