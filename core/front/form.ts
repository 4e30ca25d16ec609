/** Reads `multipart/form-data` bodies within limits: text fields into memory, large files into temporary files. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { HeldBytes } from '../model/held-bytes.ts';
import { GatewayError } from '../sdk/errors.ts';
import { plainName, type Form, type FormPart, type PartHead } from '../model/form.ts';
import type { JsonObject } from '../model/json.ts';
import { decompressing } from './body.ts';
import { clientLeft, tooLarge } from './body-errors.ts';
import { HeldMemory, type ByteBudget } from './byte-budget.ts';
import { formParserOf, type FormParser, type FormToken } from './multipart.ts';
import { StoredFile } from './stored-file.ts';

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

/** Parts of a form. */
export interface ReadForm {
  readonly form: Form;
  /** The text fields by their names without brackets; a name that repeats or has brackets holds a list. */
  readonly fields: JsonObject;
  /** Removes the temporary files and releases the memory. The caller of {@link readForm} calls it when the call has ended. */
  close(): void;
}

/** Maximum size of a text field in bytes; a prompt may be this long. */
const fieldSize = 4 * 1024 * 1024;

/** Returns true for a request with the content type of forms. */
export function isForm({ headers }: IncomingMessage): boolean {
  return /^\s*multipart\/form-data\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/**
 * Reads a form. Files beyond `inMemory` are written to a temporary file while they come, and no faster than the disk takes them. Throws 400 for
 * a form that is damaged or cut, 413 beyond a limit, each with the name of the field, and 503 when the budget has no room for the bytes in
 * memory. `close` returns them to the budget. A form that was refused leaves no files and no memory behind.
 */
export async function readForm(
  request: IncomingMessage,
  limits: FormLimits,
  budget?: ByteBudget,
): Promise<ReadForm> {
  if (Number(request.headers['content-length']) > limits.body) throw tooLarge(limits.body);
  const parser = formParserOf(request.headers['content-type'] ?? '');
  const reading = new FormReading(limits, budget);
  try {
    return await reading.read(decompressing(request), parser);
  } catch (error) {
    reading.close();
    throw readable(error);
  }
}

/** The part that is being read. */
interface OpenPart {
  readonly head: PartHead;
  /** Destination of its bytes: a text or a file. */
  readonly content: HeldBytes | StoredFile;
}

class FormReading {
  readonly #limits: FormLimits;
  readonly #parts: FormPart[] = [];
  readonly #files: StoredFile[] = [];
  readonly #memory: HeldMemory;
  #part: OpenPart | undefined;

  constructor(limits: FormLimits, budget: ByteBudget | undefined) {
    this.#limits = limits;
    this.#memory = new HeldMemory(budget);
  }

  async read(source: Readable, parser: FormParser): Promise<ReadForm> {
    let length = 0;
    // An iterator joins the chunks since the last read, however short they are.
    // The stream stays open, because the code that sends the error reads the rest of a refused form.
    for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > this.#limits.body) throw tooLarge(this.#limits.body);
      for (const token of parser.push(chunk)) {
        const stored = this.#take(token);
        if (stored !== undefined) await stored;
      }
    }
    parser.finish();
    return { form: this.#parts, fields: fieldsOf(this.#parts), close: () => this.close() };
  }

  close(): void {
    for (const file of this.#files.splice(0)) file.close();
    this.#memory.close();
  }

  /** Handles one token. Returns a promise where a file is written. */
  #take(token: FormToken): Promise<void> | undefined {
    if (token.type === 'head') {
      this.#begin(token.head);
      return undefined;
    }
    if (this.#part === undefined) return undefined;
    return token.type === 'data' ? this.#add(this.#part, token.bytes) : this.#end(this.#part);
  }

  #begin(head: PartHead): void {
    const { files, fields, inMemory } = this.#limits;
    if (head.filename === undefined) {
      if (this.#parts.length - this.#files.length >= fields) throw tooMany('fields', fields);
      this.#part = { head, content: new HeldBytes() };
      return;
    }
    if (this.#files.length >= files) throw tooMany('files', files);
    const file = new StoredFile(head, inMemory, this.#memory);
    this.#files.push(file);
    this.#part = { head, content: file };
  }

  #add({ head, content }: OpenPart, bytes: Buffer): Promise<void> | undefined {
    if (content instanceof StoredFile) {
      if (content.size + bytes.length > this.#limits.file) throw partTooLarge(head.name, this.#limits.file);
      return content.add(bytes);
    }
    if (content.length + bytes.length > fieldSize) throw partTooLarge(head.name, fieldSize);
    this.#memory.take(bytes.length);
    content.push(bytes);
    return undefined;
  }

  #end({ head: { name }, content }: OpenPart): Promise<void> | undefined {
    if (content instanceof StoredFile)
      return content.end().then((file) => void this.#parts.push({ name, file }));
    const bytes = content.take();
    if (!isUtf8(bytes))
      throw new GatewayError('invalid_value', `${plainName(name)} is not valid UTF-8.`, {
        param: plainName(name),
      });
    this.#parts.push({ name, value: bytes.toString() });
    return undefined;
  }
}

/** Returns text fields as JSON members. Uses `fromEntries` because a field may have the name `__proto__`. */
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

/** Converts errors of the connection, the disk and the parser to errors for the client. */
function readable(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') return clientLeft();
  if (syscall === 'open' || syscall === 'write' || syscall === 'unlink')
    return new GatewayError(
      'server_is_overloaded',
      'The gateway has no space for this upload. Try again later.',
      {
        retryAfter: 10,
        cause: error,
      },
    );
  return new GatewayError('invalid_request', 'The form is malformed or incomplete.', {
    cause: error,
  });
}
