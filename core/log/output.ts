/** Writes lines of the log. */
import { write, writeSync } from 'node:fs';

/*
 * sonic-boom, which pino brings along, is not used because its `flushSync` tries again forever on a full disk, so that the process could not
 * end. It also tells nobody in the log how many lines are missing, and gathers lines where they can no longer be masked together.
 */

/** Most characters gathered before they are written, and the longest that they wait, in milliseconds. */
const most = 131_072;
const longest = 250;

/** Most characters that wait for a reader who is slow: what comes beyond is lost. */
const mostWaiting = 4 * 1024 * 1024;

/** Delay before a write to a full pipe is retried, in milliseconds, and number of retries when the process ends. */
const again = 50;
const lastTries = 100;

/** Lines on their way to the system. */
interface Batch {
  readonly bytes: Buffer;
  /** Bytes of {@link bytes} that tell of lines that were lost, and how many lines that were. */
  readonly notice: number;
  readonly lostLines: number;
  /** Bytes that the system has taken. */
  written: number;
}

/** Destination of the lines. Tests use another one. */
export interface OutputOptions {
  readonly descriptor: number;
  /** Lines may be written many at a time: a write each costs more than the line. */
  readonly gathers: boolean;
  /** Changes text before it is written. */
  readonly mask: (text: string) => string;
}

let lostLines = 0;

/** Lines of the log that this process could not write: its disk was full, or nobody read them. */
export function lostLogLines(): number {
  return lostLines;
}

/**
 * Writes lines in the background. Whatever becomes of them, the process goes on: lines that cannot be written are counted, and when the
 * next ones can be, a line before them says how many are missing and why.
 */
export class LogOutput {
  readonly #options: OutputOptions;
  #gathered = '';
  #lines = 0;
  #timer: NodeJS.Timeout | undefined;
  #batch: Batch | undefined;
  /** A thread writes the batch. Otherwise it waits for its next try. */
  #writing = false;
  #lost = 0;
  #why = '';
  /** The last byte that was written is not the end of a line. */
  #torn = false;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  write(line: string): void {
    if (this.#gathered.length > mostWaiting) {
      this.#lose(1, 'it is read too slowly');
      return;
    }
    this.#gathered += line;
    this.#lines += 1;
    if (!this.#options.gathers || this.#gathered.length > most) this.#flush();
    else this.#later();
  }

  /** Writes what waits before it returns, as far as it can: for the end of the process. What a thread is writing is written without it. */
  flushSync(): void {
    const waits = this.#writing ? undefined : this.#batch;
    let rest = Buffer.concat([
      waits === undefined ? Buffer.from(this.#notice()) : waits.bytes.subarray(waits.written),
      Buffer.from(this.#take()),
    ]);
    if (waits !== undefined) this.#batch = undefined;
    for (let tries = 0; rest.length > 0 && tries < lastTries;) {
      try {
        rest = rest.subarray(writeSync(this.#options.descriptor, rest));
      } catch (error) {
        if (codeOf(error) !== 'EAGAIN') return;
        tries += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
    }
  }

  #later(): void {
    this.#timer ??= setTimeout(() => this.#flush(), longest).unref();
  }

  #flush(): void {
    if (this.#batch !== undefined || this.#lines === 0) return;
    const notice = this.#notice();
    const lost = this.#lost;
    const bytes = Buffer.from(notice + this.#take());
    this.#batch = { bytes, notice: Buffer.byteLength(notice), lostLines: lost, written: 0 };
    this.#go(this.#batch);
  }

  /** Returns the collected lines with secrets masked. */
  #take(): string {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#gathered;
    this.#gathered = '';
    this.#lines = 0;
    return this.#options.mask(text);
  }

  #notice(): string {
    if (this.#lost === 0) return '';
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      lines: this.#lost,
      why: this.#why,
      msg: 'log lines were lost: they could not be written',
    };
    return `${this.#torn ? '\n' : ''}${JSON.stringify(line)}\n`;
  }

  #go(batch: Batch): void {
    this.#writing = true;
    const { bytes, written } = batch;
    write(this.#options.descriptor, bytes, written, bytes.length - written, null, (error, count) => {
      this.#writing = false;
      if (codeOf(error) === 'EAGAIN') {
        setTimeout(() => {
          if (this.#batch === batch) this.#go(batch);
        }, again).unref();
        return;
      }
      if (error === null && count > 0) this.#advance(batch, count);
      else this.#abandon(batch, codeOf(error) ?? 'nothing was taken');
    });
  }

  #advance(batch: Batch, count: number): void {
    const before = batch.written;
    batch.written += count;
    if (before < batch.notice && batch.written >= batch.notice) this.#lost -= batch.lostLines;
    if (batch.written < batch.bytes.length) this.#go(batch);
    else {
      this.#torn = false;
      this.#over();
    }
  }

  #abandon({ bytes, notice, written }: Batch, why: string): void {
    if (written > 0) this.#torn = bytes[written - 1] !== newline;
    this.#lose(linesIn(bytes.subarray(Math.max(notice, written))), why);
    this.#over();
  }

  #over(): void {
    this.#batch = undefined;
    if (this.#lines === 0) return;
    if (!this.#options.gathers || this.#gathered.length > most) this.#flush();
    else this.#later();
  }

  #lose(lines: number, why: string): void {
    this.#lost += lines;
    this.#why = why;
    lostLines += lines;
  }
}

const newline = 0x0a;

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) count += 1;
  return count;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
