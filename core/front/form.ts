import { randomUUID } from 'node:crypto';
import { closeSync, createReadStream, openSync, unlinkSync, write } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { GatewayError } from '../sdk/errors.ts';
import { plainName, type Form, type FormPart, type Upload } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import { clientLeft, decompressing, tooLarge, type ByteBudget } from './body.ts';

/** Limits on the parts of a form. Sizes are bytes. */
export interface FormLimits {
  /** The whole form, after decompression. */
  readonly body: number;
  readonly file: number;
  readonly files: number;
  readonly fields: number;
  /** Files beyond this go to a temporary file. */
  readonly inMemory: number;
}

/** A form that was read. */
export interface ReadForm {
  readonly form: Form;
  /** The text fields by their names without brackets; a name that repeats or has brackets holds a list. */
  readonly fields: JsonObject;
  /** Lets go of the files. Whoever reads a form does so when its call has ended. */
  close(): void;
}

/** Longest text field: as long as a prompt may be. */
const fieldSize = 4 * 1024 * 1024;

/** True for a body that says that it is a form. */
export function isForm({ headers }: IncomingMessage): boolean {
  return /^\s*multipart\/form-data\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/**
 * Reads a form. Files beyond `inMemory` are written to a temporary file while they come, and no faster than the disk takes them. 400 for
 * a form that is damaged or cut, 413 beyond a limit, each with the name of the field, 503 when the budget has no room for what is kept in
 * memory, which it gets back when the form is closed. Nothing is left behind by a form that was refused.
 */
export async function readForm(
  request: IncomingMessage,
  limits: FormLimits,
  budget?: ByteBudget,
): Promise<ReadForm> {
  if (Number(request.headers['content-length']) > limits.body) throw tooLarge(limits.body);
  const parser = parserOf(request, limits);
  const source = decompressing(request);
  const reading = new FormReading(source, parser, limits, budget);
  try {
    return await reading.read();
  } catch (error) {
    reading.close();
    throw error;
  }
}

function parserOf({ headers }: IncomingMessage, limits: FormLimits): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': headers['content-type'] ?? '' },
      // A part with a file name is a file, whatever type it says.
      isPartAFile: (_name, _type, filename) => filename !== undefined,
      limits: {
        fieldNameSize: 200,
        fieldSize,
        fields: limits.fields,
        files: limits.files,
        fileSize: limits.file,
        headerPairs: 50,
        headerSize: 16 * 1024,
      },
    });
  } catch (error) {
    throw new GatewayError(
      'invalid_request',
      'Content-Type names no boundary between the parts of the form.',
      {
        cause: error,
      },
    );
  }
}

class FormReading {
  readonly #source: Readable;
  readonly #parser: BusboyInstance;
  readonly #limits: FormLimits;
  readonly #parts: FormPart[] = [];
  readonly #files: StoredFile[] = [];
  readonly #memory: Memory;
  #length = 0;

  constructor(source: Readable, parser: BusboyInstance, limits: FormLimits, budget: ByteBudget | undefined) {
    this.#source = source;
    this.#parser = parser;
    this.#limits = limits;
    this.#memory = new Memory(budget);
  }

  read(): Promise<ReadForm> {
    return new Promise((resolve, reject) => {
      let settled = false;
      const fail = (error: unknown): void => {
        if (settled) return;
        settled = true;
        this.#source.unpipe(this.#parser);
        this.#source.off('data', count);
        this.#source.pause();
        reject(readable(error));
      };
      const count = (chunk: Buffer): void => {
        this.#length += chunk.length;
        if (this.#length > this.#limits.body) fail(tooLarge(this.#limits.body));
      };
      const whenStored: Promise<Upload>[] = [];
      // Where a part has no name the parser gives none, whatever its types say.
      const nameOf = (name: string | undefined): string => {
        if (name === undefined) fail(new GatewayError('invalid_request', 'A part of the form has no name.'));
        return name ?? '';
      };
      this.#parser.on('field', (told, value, nameCut, valueCut) => {
        const name = nameOf(told);
        if (nameCut) fail(new GatewayError('invalid_value', 'The name of a form field is too long.'));
        else if (valueCut) fail(partTooLarge(name, fieldSize));
        else if (!settled) {
          try {
            this.#memory.take(Buffer.byteLength(value));
            this.#parts.push({ name, value });
          } catch (error) {
            fail(error);
          }
        }
      });
      this.#parser.on('file', (told, stream, filename, _encoding, mimeType) => {
        const name = nameOf(told);
        const place = this.#parts.push({ name, value: '' }) - 1;
        const file = new StoredFile(filename, mimeType, this.#limits.inMemory, this.#memory);
        this.#files.push(file);
        const stored = file.store(stream, partTooLarge(name, this.#limits.file));
        stored.then((upload) => void (this.#parts[place] = { name, file: upload }), fail);
        whenStored.push(stored);
      });
      this.#parser.on('filesLimit', () => fail(tooMany('files', this.#limits.files)));
      this.#parser.on('fieldsLimit', () => fail(tooMany('fields', this.#limits.fields)));
      this.#parser.on('error', fail);
      this.#parser.on('finish', () => {
        Promise.all(whenStored).then(() => {
          if (settled) return;
          settled = true;
          resolve({ form: this.#parts, fields: fieldsOf(this.#parts), close: () => this.close() });
        }, fail);
      });
      this.#source.on('error', fail);
      this.#source.on('close', () => {
        if (!this.#source.readableEnded) fail(clientLeft());
      });
      this.#source.on('data', count);
      this.#source.pipe(this.#parser);
    });
  }

  close(): void {
    for (const file of this.#files.splice(0)) file.close();
    this.#memory.close();
  }
}

/** What one form holds of a budget. */
class Memory {
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
class StoredFile {
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

/** Text fields as JSON members. `fromEntries` makes members of its own, whatever a stranger calls them. */
function fieldsOf(parts: readonly FormPart[]): JsonObject {
  const fields = new Map<string, string | string[]>();
  for (const part of parts) {
    if (!('value' in part)) continue;
    const name = plainName(part.name);
    const before = fields.get(name);
    if (Array.isArray(before)) before.push(part.value);
    else if (before === undefined) fields.set(name, name === part.name ? part.value : [part.value]);
    else fields.set(name, [before, part.value]);
  }
  return Object.fromEntries(fields);
}

function partTooLarge(name: string, limit: number): GatewayError {
  const field = plainName(name).slice(0, 100);
  return new GatewayError('request_too_large', `${field} is larger than ${limit} bytes.`, { param: field });
}

function tooMany(what: string, limit: number): GatewayError {
  return new GatewayError('invalid_value', `The form has more than ${limit} ${what}.`);
}

/** What a parser and a disk say, for the client. */
function readable(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ECONNRESET') return clientLeft();
  if (syscall === 'open' || syscall === 'write' || syscall === 'unlink')
    return new GatewayError('server_is_overloaded', 'The gateway has no room for this upload now.', {
      retryAfter: 10,
      cause: error,
    });
  return new GatewayError('invalid_request', 'The form is damaged, or was cut before its end.', {
    cause: error,
  });
}
