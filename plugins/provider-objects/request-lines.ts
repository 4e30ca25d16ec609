import type { JsonObject } from 'sluice';
import { isObject, parseObject, type InternalTools } from 'sluice/internal';
import { codecOfLine, endpointOfLine } from './batch-sorts.ts';
import type { ObjectFormat } from './collections.ts';
import { Lines } from './lines.ts';
import { NeedsByModel, type Needs } from './needs.ts';
import { referencesIn, refersToTurns } from './references.ts';

/** What the lines of a file ask for, where each is a request of a batch. */
export interface RequestedLines {
  /** The public names of their models, each once; none where the lines name no model. */
  readonly models: readonly string[];
  /** True where some of them name none. */
  readonly unnamed?: true;
  /** What they refer to: kinds and ids. */
  readonly references: readonly (readonly [kind: string, id: string])[];
  readonly count: number;
  /** The endpoints that they are for, each once, where lines name theirs. */
  readonly endpoints: readonly string[];
  /** What they may use, by the model that they name, or `''` where they name none; absent where one of them cannot be read. */
  readonly needs?: Readonly<Record<string, Needs>>;
  /** Why it cannot. */
  readonly unreadable?: string;
}

/** What was read of a file that comes in several requests: as JSON, between two of them. */
export interface BegunLines extends RequestedLines {
  /** The line that is not complete, in base64. */
  readonly rest: string;
}

const most = { models: 50, references: 1000, endpoints: 10 };

/** The longest part of a line that is kept between two requests, in bytes. */
const longestRest = 1024 * 1024;

/**
 * Reads a file of requests while it passes by, line by line. As soon as something in it is no such request, or there is more of it than can
 * be kept, nothing is known of it any more.
 */
export class RequestLines {
  readonly #format: ObjectFormat;
  readonly #formats: InternalTools['format'];
  readonly #lines = new Lines((line) => this.#line(line));
  readonly #models = new Set<string>();
  readonly #references = new Map<string, readonly [string, string]>();
  readonly #endpoints = new Set<string>();
  readonly #needs: NeedsByModel;
  #unreadable: string | undefined;
  #isUnnamed = false;
  #count = 0;
  #isKnown = true;
  #isText = false;

  /** Lines of an API, which `formats` can read; `begun` is what was read of them before. */
  constructor(format: ObjectFormat, formats: InternalTools['format'], begun?: BegunLines) {
    this.#format = format;
    this.#formats = formats;
    this.#needs = new NeedsByModel(begun?.needs);
    if (begun === undefined) return;
    this.#isText = true;
    this.#count = begun.count;
    this.#unreadable = begun.unreadable;
    this.#isUnnamed = begun.unnamed === true;
    for (const model of begun.models) this.#models.add(model);
    for (const endpoint of begun.endpoints) this.#endpoints.add(endpoint);
    for (const [kind, id] of begun.references) this.#references.set(`${kind} ${id}`, [kind, id]);
    this.#lines.push(Buffer.from(begun.rest, 'base64'));
  }

  /** False when nothing will be known of them, whatever comes. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The model of the first line; undefined while none has come. */
  get model(): string | undefined {
    return this.#models.values().next().value;
  }

  /** True when the first line is read, or there is none that is a request. */
  get hasBegun(): boolean {
    return this.#count > 0 || !this.#isKnown;
  }

  push(bytes: Buffer): void {
    if (!this.#isKnown) return;
    try {
      // Films and pictures have no lines: nothing of them is held.
      if (!this.#isText && bytes.length > 0) {
        this.#isText = /^\s*\{/.test(bytes.subarray(0, 100).toString('latin1'));
        if (!this.#isText) this.#giveUp();
      }
      if (this.#isKnown) this.#lines.push(bytes);
    } catch {
      this.#giveUp();
    }
  }

  /** The file has ended: its last line is complete. */
  flush(): void {
    if (this.#isKnown) this.#lines.end();
  }

  /** What the file asks for, when all of it has come; undefined where that is not known. */
  end(): RequestedLines | undefined {
    this.flush();
    return this.#isKnown && this.#count > 0 ? this.#told() : undefined;
  }

  /** What was read so far, from which others go on; undefined where nothing is known, or too much of a line has come. */
  begun(): BegunLines | undefined {
    const { rest } = this.#lines;
    if (!this.#isKnown || !this.#isText || rest.length > longestRest) return undefined;
    return { ...this.#told(), rest: rest.toString('base64') };
  }

  #told(): RequestedLines {
    return {
      models: [...this.#models],
      ...(this.#isUnnamed ? { unnamed: true } : {}),
      references: [...this.#references.values()],
      count: this.#count,
      endpoints: [...this.#endpoints],
      ...(this.#unreadable === undefined ? { needs: this.#needs.all } : { unreadable: this.#unreadable }),
    };
  }

  #line(text: string): void {
    if (!this.#isKnown) return;
    const line = parseObject(text);
    const body = bodyIn(line, this.#format);
    if (line === undefined || body === undefined) {
      this.#giveUp();
      return;
    }
    try {
      for (const { kind, id } of referencesIn(body, this.#format))
        this.#references.set(`${kind} ${id}`, [kind, id]);
    } catch {
      this.#giveUp();
      return;
    }
    const { model } = body;
    const name = typeof model === 'string' ? model.replace(/^models\//, '') : '';
    if (name === '') this.#isUnnamed = true;
    else this.#models.add(name);
    this.#count += 1;
    this.#measure(line, body, name);
    if (
      this.#models.size > most.models ||
      this.#references.size > most.references ||
      this.#endpoints.size > most.endpoints
    )
      this.#giveUp();
  }

  #measure(line: JsonObject, body: JsonObject, model: string): void {
    const isChat = this.#format === 'chat-completions';
    const endpoint = isChat ? endpointOfLine(line, body) : undefined;
    if (endpoint !== undefined) this.#endpoints.add(endpoint);
    if (this.#unreadable !== undefined) return;
    const [format, operation] = codecOfLine(this.#format, line, body) ?? ['', 'chat'];
    const codec = this.#formats(format)?.codecs[operation];
    try {
      if (codec === undefined) throw new Error('its endpoint is not known here');
      this.#needs.add(model, codec, isChat && model === '' ? { ...body, model: 'model' } : body);
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      this.#unreadable = `request ${this.#count}: ${reason.slice(0, 300).replace(/\.$/, '')}`;
    }
  }

  #giveUp(): void {
    this.#isKnown = false;
  }
}

/** The request in a line. Where a format names no model in it, the batch does. */
function bodyIn(line: JsonObject | undefined, format: ObjectFormat): JsonObject | undefined {
  if (line === undefined) return undefined;
  if (format === 'generate-content') return isObject(line['request']) ? line['request'] : undefined;
  const { body } = line;
  // Turns that a provider remembers by themselves are nobody's here: no line may go on from them.
  if (isObject(body) && refersToTurns(body)) return undefined;
  // Where lines name no model, the batch may.
  const { model = '' } = isObject(body) ? body : {};
  return isObject(body) && typeof model === 'string' && typeof line['custom_id'] === 'string'
    ? body
    : undefined;
}
