import { randomUUID } from 'node:crypto';
import { closeSync, createReadStream, openSync, unlinkSync, write } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { HeldBytes } from '../model/held-bytes.ts';
import type { PartHead, Upload } from '../model/form.ts';
import type { HeldMemory } from './byte-budget.ts';

/** Number of leading bytes of an upload that identify its type. */
const headSize = 64;

/** Bytes that are joined before they are written, because each write costs the same, however short it is. */
const writeSize = 64 * 1024;

/** The bytes of one file: in memory while they are few, else in a file that has no name any more, so that nothing is left of it even after a crash. */
export class StoredFile {
  readonly #head: PartHead;
  readonly #inMemory: number;
  readonly #memory: HeldMemory;
  /** All bytes of a short file, or the bytes of a long one that are not written yet. */
  readonly #held = new HeldBytes();
  #whole: Buffer | undefined;
  #start = Buffer.alloc(0);
  #size = 0;
  #file: number | undefined;
  #written = 0;
  #isWriting = false;
  #isClosed = false;

  constructor(head: PartHead, inMemory: number, memory: HeldMemory) {
    this.#head = head;
    this.#inMemory = inMemory;
    this.#memory = memory;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds some bytes. Returns a promise when they go to the disk: add no more before it resolves. Throws 503 where there is no memory. */
  add(bytes: Buffer): Promise<void> | undefined {
    this.#memory.take(bytes.length);
    this.#size += bytes.length;
    if (this.#start.length < headSize)
      this.#start = Buffer.concat([this.#start, bytes]).subarray(0, headSize);
    this.#held.push(bytes);
    if (this.#size <= this.#inMemory || this.#held.length < writeSize) return undefined;
    return this.#write();
  }

  /** Resolves with the file when all of it is stored. */
  async end(): Promise<Upload> {
    if (this.#size > this.#inMemory && this.#held.length > 0) await this.#write();
    this.#whole = this.#held.take();
    const { filename = '', mimeType } = this.#head;
    return { filename, mimeType, size: this.#size, head: this.#start, open: () => this.#open() };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held.take();
    this.#whole = undefined;
    this.#release();
  }

  /** Writes what is held to the temporary file, which is made on first use. */
  #write(): Promise<void> {
    const bytes = this.#held.take();
    const file = (this.#file ??= temporaryFile());
    return new Promise((resolve, reject) => {
      const from = (start: number): void => {
        this.#isWriting = true;
        write(file, bytes, start, bytes.length - start, this.#written, (error, written) => {
          this.#isWriting = false;
          this.#written += written;
          if (this.#isClosed) this.#release();
          if (error === null && start + written < bytes.length && !this.#isClosed) {
            from(start + written);
            return;
          }
          this.#memory.giveBack(bytes.length);
          if (error === null) resolve();
          else reject(error);
        });
      };
      from(0);
    });
  }

  /** Closes the descriptor, but not while something is written to it, because another file could get its number. */
  #release(): void {
    if (this.#file === undefined || this.#isWriting) return;
    closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): Readable {
    if (this.#isClosed) throw new Error('Cannot open a file of a call that has ended.');
    if (this.#file === undefined)
      return Readable.from(this.#whole === undefined ? [] : [this.#whole], { objectMode: false });
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
