import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { GatewayError } from '../sdk/errors.ts';
import { plainName, type Form, type FormPart, type Upload } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import { decompressing } from './body.ts';
import { clientLeft, tooLarge } from './body-errors.ts';
import type { ByteBudget } from './byte-budget.ts';
import { Memory, StoredFile } from './stored-file.ts';

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
