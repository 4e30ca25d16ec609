/** Streams a form with one file from the client to a provider. Checks its parts, limits its size and encodes it anew. */
import { Readable } from 'node:stream';
import { GatewayError, foldName, type BodyStream, HeldBytes } from 'sluice';
import { encodeFormEnd, encodePartHead, formParserOf, formType, newBoundary } from 'sluice/internal';
import type { FormParser, FormToken, PartHead, RequestBody } from './core-types.ts';
import type { FormReferences } from './form-references.ts';
import type { RequestedLines } from './known-lines.ts';
import type { RequestLines } from './request-lines.ts';

/** Number of bytes that are read before the channel is chosen, so that the first line's model and the length of short forms are known. */
const lookAhead = 256 * 1024;

/** A form with one file that goes to a provider while it comes from a client. Destroy its bytes if they are not sent. */
export interface FormUpload {
  /** The model of the file's first line, where that is a request of a batch. */
  readonly model: string | undefined;
  readonly upload: BodyStream;
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the requests in the lines of the file, when all of it has been sent; undefined where they are not known. */
  end(): RequestedLines | undefined;
  /** Reason why they are not known. */
  readonly reason: string | undefined;
  /** Members that were dropped from lines of the file. */
  readonly losses: readonly string[];
  /** Error for which the gateway has cut the form: a limit, or invalid syntax. */
  readonly wrong: unknown;
}

/** Readers of the parts of a form while it streams. */
export interface FormReaders {
  readonly lines: RequestLines;
  readonly references: FormReferences;
}

/** Maximum number of bytes of all text fields together, and maximum number of parts. */
const most = { text: 64 * 1024, parts: 100 };

/**
 * Begins to read a form of at most `limit` bytes, whose file and text fields go to `readers`. Resolves when the channel can be chosen. The form is
 * encoded anew for the provider, so that the provider cannot parse it in another way than the gateway. Throws errors that are found until then.
 */
export async function beginUpload(
  body: RequestBody,
  readers: FormReaders,
  limit: number,
): Promise<FormUpload> {
  const passage = new FormPassage(body, readers, limit);
  const early = new HeldBytes();
  let hasEnded = false;
  try {
    while (!hasEnded && early.length < lookAhead) {
      // oxlint-disable-next-line no-await-in-loop -- one piece after the other
      const pieces = await passage.next();
      if (pieces === undefined) hasEnded = true;
      else for (const piece of pieces) early.push(piece);
    }
  } catch (error) {
    await passage.close();
    throw error;
  }
  const { length } = early;
  const bytes = Readable.from(passage.rest(early, hasEnded), {
    objectMode: false,
    highWaterMark: 64 * 1024,
  });
  bytes.once('close', () => void passage.close());
  return {
    model: readers.lines.model,
    headers: { 'content-type': passage.type },
    upload: { bytes, ...(hasEnded ? { length } : {}) },
    end: () => readers.lines.end(),
    get reason() {
      return readers.lines.reason;
    },
    get losses() {
      return readers.lines.losses;
    },
    get wrong() {
      return passage.wrong;
    },
  };
}

/** Sends a form. Where the gateway has cut the form, rejects with the reason in place of the error that followed from the cut. */
export async function sendForm<Answer>(
  form: FormUpload,
  send: (form: FormUpload) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await send(form);
  } catch (error) {
    form.upload.bytes.destroy();
    throw form.wrong ?? error;
  }
}

const lineEnd = Buffer.from('\r\n');
const noBytes = Buffer.alloc(0);

/** A form on its way from the client to the provider: checked, and encoded anew. */
class FormPassage {
  readonly #boundary = newBoundary();
  readonly #parser: FormParser;
  readonly #rules = new FormRules();
  readonly #lines: RequestLines;
  readonly #references: FormReferences;
  readonly #limit: number;
  readonly #source: AsyncIterator<Buffer>;
  #length = 0;
  #hasEnded = false;
  #wrong: unknown;

  constructor(body: RequestBody, { lines, references }: FormReaders, limit: number) {
    this.#parser = formParserOf(body.type);
    this.#source = body.stream(limit).iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
    this.#lines = lines;
    this.#references = references;
    this.#limit = limit;
  }

  get type(): string {
    return formType(this.#boundary);
  }

  get wrong(): unknown {
    return this.#wrong;
  }

  /** Reads the next bytes and returns their encoded form; undefined at the end. */
  async next(): Promise<readonly Buffer[] | undefined> {
    if (this.#hasEnded) return undefined;
    const { done, value } = await this.#source.next();
    try {
      if (done === true) {
        this.#parser.finish();
        this.#hasEnded = true;
        return [encodeFormEnd(this.#boundary)];
      }
      return await this.#encoded(value);
    } catch (error) {
      this.#wrong = error;
      throw error;
    }
  }

  /** Yields the bytes that were read before, and then the rest. */
  async *rest(early: HeldBytes, hasEnded: boolean): AsyncGenerator<Buffer> {
    yield early.take();
    for (let ended = hasEnded; !ended;) {
      // oxlint-disable-next-line no-await-in-loop -- one piece after the other
      const pieces = await this.next();
      ended = pieces === undefined;
      if (pieces !== undefined) yield* pieces;
    }
  }

  /** Stops reading from the client, and frees memory. The code that writes the response reads the rest of the request. */
  async close(): Promise<void> {
    this.#lines.close();
    await this.#source.return?.();
  }

  async #encoded(bytes: Buffer): Promise<readonly Buffer[]> {
    this.#length += bytes.length;
    if (this.#length > this.#limit)
      throw new GatewayError('request_too_large', `The request body is larger than ${this.#limit} bytes.`);
    const encoded: Buffer[] = [];
    for (const token of this.#parser.push(bytes)) {
      this.#rules.check(token);
      // oxlint-disable-next-line no-await-in-loop -- the next bytes are read when these lines are done
      const piece = this.#rules.isFile ? await this.#readFile(token) : this.#readText(token);
      if (piece.length > 0) encoded.push(piece);
      if (token.type === 'end') encoded.push(lineEnd);
    }
    await this.#references.settled();
    return encoded;
  }

  async #readFile(token: FormToken): Promise<Buffer> {
    if (token.type === 'data') return this.#lines.push(token.bytes);
    return token.type === 'head' ? this.#begin(token.head, true) : this.#lines.flush();
  }

  #readText(token: FormToken): Buffer {
    if (token.type === 'head') return this.#begin(token.head, false);
    if (token.type === 'end') this.#references.end();
    else this.#references.push(token.bytes);
    return token.type === 'data' ? token.bytes : noBytes;
  }

  #begin(head: PartHead, isFile: boolean): Buffer {
    this.#references.begin(head.name, isFile);
    return encodePartHead(this.#boundary, head);
  }
}

/** Checks that a form has one file and each text field once, so that all parsers read the same values. */
class FormRules {
  readonly #names = new Set<string>();
  #parts = 0;
  #files = 0;
  #text = 0;
  #isFile = false;

  /** True while the part is the file, which has a filename or the name `file`. */
  get isFile(): boolean {
    return this.#isFile;
  }

  /** Throws 400 for a part that is not allowed, and 413 for too long text fields. */
  check(token: FormToken): void {
    if (token.type === 'head') this.#begin(token.head);
    if (token.type !== 'data' || this.#isFile) return;
    this.#text += token.bytes.length;
    if (this.#text > most.text)
      throw new GatewayError('request_too_large', `The texts of the form have more than ${most.text} bytes.`);
  }

  #begin({ name, filename }: PartHead): void {
    this.#parts += 1;
    if (this.#parts > most.parts)
      throw new GatewayError('invalid_value', `The form has more than ${most.parts} parts.`);
    const folded = foldName(name);
    if (!name.endsWith('[]') && this.#names.has(folded))
      throw new GatewayError('invalid_value', `The form has "${name.slice(0, 100)}" twice.`, { param: name });
    this.#names.add(folded);
    this.#isFile = filename !== undefined || name === 'file';
    if (this.#isFile) this.#files += 1;
    if (this.#files > 1) throw new GatewayError('invalid_value', 'The form has more than one file.');
  }
}
