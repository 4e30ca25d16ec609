import { randomUUID } from 'node:crypto';
import { closeSync, createReadStream, openSync, unlinkSync, write } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { BusboyFileStream } from '@fastify/busboy';
import type { Upload } from '../model/form.ts';
import type { GatewayError } from '../sdk/errors.ts';
import type { ByteBudget } from './byte-budget.ts';

/** What one form holds of a budget. */
export class Memory {
  readonly #budget: ByteBudget | undefined;
  #held = 0;
  #closed = false;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  take(bytes: number): void {
    if (this.#closed) return;
    this.#budget?.take(bytes);
    this.#held += bytes;
  }

  giveBack(bytes: number): void {
    if (this.#closed) return;
    this.#held -= bytes;
    this.#budget?.giveBack(bytes);
  }

  /** Gives all back, once. */
  close(): void {
    this.giveBack(this.#held);
    this.#closed = true;
  }
}

/** Bytes of an upload by which its kind can be told. */
const headSize = 64;

/** The bytes of one file: in memory while they are few, else in a file that has no name any more, so that nothing is left of it even after a crash. */
export class StoredFile {
  readonly #filename: string;
  readonly #mimeType: string;
  readonly #inMemory: number;
  readonly #memory: Memory;
  #chunks: Buffer[] = [];
  #head = Buffer.alloc(0);
  #size = 0;
  #file: number | undefined;
  /** Bytes that were given to the file, and writes of them that are not done. */
  #given = 0;
  #writing = 0;
  #closed = false;

  constructor(filename: string | undefined, mimeType: string, inMemory: number, memory: Memory) {
    this.#filename = filename ?? '';
    this.#mimeType = mimeType;
    this.#inMemory = inMemory;
    this.#memory = memory;
  }

  /** Takes in the stream; rejects with `beyond` when it is cut at the limit. */
  store(stream: BusboyFileStream, beyond: GatewayError): Promise<Upload> {
    return new Promise((resolve, reject) => {
      let ended = false;
      const done = (): void => {
        if (ended && this.#writing === 0) resolve(this.#upload());
      };
      const put = (chunk: Buffer): void => {
        stream.pause();
        this.#write(chunk, (error) => {
          if (error !== undefined) reject(error);
          if (this.#writing === 0) stream.resume();
          done();
        });
      };
      stream.on('limit', () => reject(beyond));
      stream.on('error', reject);
      stream.on('data', (chunk: Buffer) => {
        if (this.#closed) return;
        this.#size += chunk.length;
        if (this.#head.length < headSize)
          this.#head = Buffer.concat([this.#head, chunk]).subarray(0, headSize);
        try {
          if (this.#file === undefined && this.#size <= this.#inMemory) {
            this.#memory.take(chunk.length);
            this.#chunks.push(chunk);
            return;
          }
          this.#file ??= temporaryFile();
        } catch (error) {
          reject(error instanceof Error ? error : new Error('There is no temporary file.', { cause: error }));
          return;
        }
        for (const early of this.#chunks.splice(0)) {
          this.#memory.giveBack(early.length);
          put(early);
        }
        put(chunk);
      });
      stream.on('end', () => {
        ended = true;
        done();
      });
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#chunks = [];
    this.#release();
  }

  #write(chunk: Buffer, done: (error?: Error) => void): void {
    const file = this.#file;
    if (file === undefined) return;
    const place = this.#given;
    this.#given += chunk.length;
    this.#writing += 1;
    const from = (start: number): void =>
      write(file, chunk, start, chunk.length - start, place + start, (error, written) => {
        if (error === null && start + written < chunk.length) {
          from(start + written);
          return;
        }
        this.#writing -= 1;
        if (this.#closed) this.#release();
        done(error ?? undefined);
      });
    from(0);
  }

  /** A descriptor stays open while something is written to it: another file could get its number. */
  #release(): void {
    if (this.#file === undefined || this.#writing > 0) return;
    closeSync(this.#file);
    this.#file = undefined;
  }

  #upload(): Upload {
    return {
      filename: this.#filename,
      mimeType: this.#mimeType,
      size: this.#size,
      head: this.#head,
      open: () => this.#open(),
    };
  }

  #open(): Readable {
    if (this.#closed) throw new Error('The file of a call that has ended was opened.');
    if (this.#file === undefined) return Readable.from(this.#chunks, { objectMode: false });
    return createReadStream('', {
      fd: this.#file,
      start: 0,
      end: this.#size - 1,
      autoClose: false,
      highWaterMark: 64 * 1024,
    });
  }
}

function temporaryFile(): number {
  const path = join(tmpdir(), `sluice-upload-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}
