/** Reads and writes the lines of batch files. */
import type { PaidMember } from '../_find-paid-members.ts';
import { GatewayError, type JsonObject, HeldBytes } from 'sluice';
import { type Codec, editMembersOf } from 'sluice/channel-kit';
import {
  checkMemberNames,
  checkRequestMembers,
  checkModelName,
  excludedMember,
  HeldMemory,
  parseJsonLine,
  type InternalTools,
} from 'sluice/internal';
import type { BodyLimits, ByteBudget } from './core-types.ts';
import { membersOfBatch } from '../_paid-members.ts';
import { codecOfLine, endpointOfLine, memberOfLine } from './batch-sorts.ts';
import type { ObjectFormat } from './collections.ts';
import { LineAddresses } from './line-addresses.ts';
import { contentOf, Lines } from './lines.ts';
import type { BegunLines, RequestedLines } from './known-lines.ts';
import { NeedsByModel } from './needs.ts';
import { bodyOfLine } from './line-body.ts';
import { referencesIn } from './references.ts';
import { isSliceOver, nextSlice } from './slices.ts';

const most = { models: 50, references: 1000, addresses: 1000, endpoints: 10, 'kinds of paid tools': 50 };

/** Maximum length of the path that a line is for. */
const longestEndpoint = 200;

/** Maximum length of the part of a line that is kept between two requests, in bytes. */
const longestRest = 1024 * 1024;

/** A value of the setting `sampling`. */
export type Sampling = InternalTools['settings']['sampling'];

/** Services for reading lines. */
export interface LineTools {
  readonly formats: InternalTools['format'];
  /** Limits of each line: the same as of the body of a call. */
  readonly limits: BodyLimits;
  /** Treatment of a request with mutually exclusive settings: `exclusive` drops one of them from the line. */
  readonly sampling: Sampling;
  /** Reserves memory for lines. Throws 503 when none is left. */
  readonly budget?: ByteBudget;
}

/**
 * Reads a file of requests while it passes by, line by line, in slices between which other callers run. As soon as something in it is no such
 * request, or there is more of it than can be kept, it forgets everything but the reason. What it returns goes to the provider: the same bytes,
 * except for lines from which a member is dropped. Close it: it counts memory.
 */
export class RequestLines {
  readonly #format: ObjectFormat;
  readonly #tools: LineTools;
  readonly #memory: HeldMemory;
  readonly #lines = new Lines();
  readonly #models = new Set<string>();
  readonly #references = new Map<string, readonly [string, string]>();
  readonly #addresses = new LineAddresses();
  readonly #endpoints = new Set<string>();
  readonly #paid = new Map<string, PaidMember>();
  readonly #needs: NeedsByModel;
  #unreadable: string | undefined;
  #isUnnamed = false;
  #count = 0;
  #reason: string | undefined;
  #isText = false;
  readonly #losses = new Set<string>();

  /** Lines of an API; `begun` is what was read of them before. */
  constructor(format: ObjectFormat, tools: LineTools, begun?: BegunLines) {
    this.#format = format;
    this.#tools = tools;
    this.#memory = new HeldMemory(tools.budget);
    this.#needs = new NeedsByModel(begun?.needs);
    if (begun !== undefined) this.#goOn(begun);
  }

  #goOn(begun: BegunLines): void {
    this.#isText = true;
    this.#count = begun.count;
    this.#unreadable = begun.unreadable;
    this.#isUnnamed = begun.unnamed === true;
    for (const model of begun.models) this.#models.add(model);
    for (const endpoint of begun.endpoints) this.#endpoints.add(endpoint);
    for (const one of begun.paid ?? []) this.#addPaid(one);
    for (const one of begun.addresses ?? []) this.#addresses.add(one);
    for (const [kind, id] of begun.references) this.#references.set(`${kind} ${id}`, [kind, id]);
    // The rest of a line has no line break, so that it completes none.
    this.#lines.add(Buffer.from(begun.rest, 'base64'));
    this.#lines.next();
  }

  /** False when nothing will be known of them, whatever comes. */
  get isKnown(): boolean {
    return this.#reason === undefined;
  }

  /** Why nothing is known of them. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** The model of the first line; undefined while none has come. */
  get model(): string | undefined {
    return this.#models.values().next().value;
  }

  /** Members that were dropped from lines, each once. */
  get losses(): readonly string[] {
    return [...this.#losses];
  }

  /** Reads some bytes, and returns those that are complete. Resolves when more may come; rejects with 503 where there is no memory for them. */
  async push(bytes: Buffer): Promise<Buffer> {
    const passed = new HeldBytes();
    const isRead = this.isKnown && this.#isTextWith(bytes);
    if (!isRead) passed.push(this.#lines.take());
    this.#lines.add(bytes);
    while (this.isKnown) {
      const line = this.#tried(() => this.#lines.next());
      if (line === undefined) break;
      passed.push(this.#tried(() => this.#line(line)) ?? line);
      // oxlint-disable-next-line no-await-in-loop -- other callers run between two lines
      if (isSliceOver()) await nextSlice();
    }
    if (this.isKnown) this.#memory.hold(this.#lines.held);
    else passed.push(this.#lines.take());
    return passed.take();
  }

  /** Ends the file, and returns its last line. */
  flush(): Buffer {
    const line = this.#lines.take();
    return (this.isKnown ? this.#tried(() => this.#line(line)) : undefined) ?? line;
  }

  /** Returns the requests of the file after its end; undefined if they are unknown. */
  end(): RequestedLines | undefined {
    this.flush();
    return this.isKnown && this.#count > 0 ? this.#summary() : undefined;
  }

  /** Returns what was read so far, from which others go on; undefined where nothing is known, or too much of a line has come. */
  begun(): BegunLines | undefined {
    if (!this.isKnown || !this.#isText || this.#lines.held > longestRest) return undefined;
    return { ...this.#summary(), rest: this.#lines.rest.toString('base64') };
  }

  /** Releases the memory. */
  close(): void {
    this.#lines.take();
    this.#memory.close();
  }

  /** Returns false for films and pictures, which have no lines: nothing of them is held. */
  #isTextWith(bytes: Buffer): boolean {
    if (this.#isText) return true;
    const start = /\S/.exec(bytes.subarray(0, 100).toString('latin1'))?.[0];
    if (start === undefined && bytes.length < 100) return true;
    this.#isText = start === '{';
    if (!this.#isText) this.#giveUp('The file does not begin with a JSON object.');
    return this.#isText;
  }

  /** Runs one step of the work. Whatever it throws is the reason why nothing is known, except for a lack of memory. */
  #tried<Result>(step: () => Result): Result | undefined {
    try {
      return step();
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      this.#giveUp(`Request ${this.#count + 1}: ${error.message}`);
      return undefined;
    }
  }

  #summary(): RequestedLines {
    return {
      models: [...this.#models],
      ...(this.#isUnnamed ? { unnamed: true } : {}),
      references: [...this.#references.values()],
      count: this.#count,
      paid: [...this.#paid.values()],
      addresses: this.#addresses.all,
      endpoints: [...this.#endpoints],
      ...(this.#unreadable === undefined ? { needs: this.#needs.all } : { unreadable: this.#unreadable }),
    };
  }

  /** Reads a line. Returns it without the member that its settings exclude; undefined where it stays as it is. */
  #line(raw: Buffer): Buffer | undefined {
    const bytes = contentOf(raw);
    if (bytes === undefined) return undefined;
    const line = this.#parsed(bytes);
    const body = bodyOfLine(line, this.#format);
    if (body === undefined) throw new GatewayError('invalid_value', 'The line is not a request of a batch.');
    checkRequestMembers(body, { path: 'body', members: this.#tools.limits.members });
    for (const { kind, id } of referencesIn(body, this.#format))
      this.#references.set(`${kind} ${id}`, [kind, id]);
    const { model } = body;
    const name = typeof model === 'string' ? model.replace(/^models\//, '') : '';
    checkModelName(name);
    const codec = this.#codecOf(line, body);
    for (const one of membersOfBatch(body, codec?.format))
      this.#addPaid({ ...one, path: `requests[${this.#count}].${one.path}` });
    this.#addresses.addOf(body, this.#count);
    if (name === '') this.#isUnnamed = true;
    else this.#models.add(name);
    const excluded = codec && excludedMember(codec, body, this.#tools.sampling);
    this.#measure(line, body, { model: name, codec });
    this.#checkCounts();
    this.#count += 1;
    this.#memory.hold(0);
    if (excluded === undefined) return undefined;
    const member = memberOfLine(this.#format);
    this.#losses.add(`${member}.${excluded}`);
    return editMembersOf(raw, member, { [excluded]: undefined });
  }

  /** Returns the codec that reads the request of a line; undefined where its endpoint is not known. */
  #codecOf(line: JsonObject, body: JsonObject): Codec | undefined {
    const [format, operation] = codecOfLine(this.#format, line, body) ?? ['', 'chat'];
    return this.#tools.formats(format)?.codecs[operation];
  }

  /** Throws for a line that is no JSON within the limits, or that others may read as several lines or as another object. */
  #parsed(bytes: Buffer): JsonObject {
    // JSON allows this between two members, and many programs end a line there.
    if (bytes.includes(0x0d))
      throw new GatewayError('invalid_value', 'The line has a carriage return in it.');
    const line = parseJsonLine(bytes, this.#tools.limits, 'The line', this.#memory);
    checkMemberNames(line);
    return line;
  }

  /** Remembers the first member of each sort. */
  #addPaid(member: PaidMember): void {
    const { kind, service = '', models } = member;
    const sort = JSON.stringify([kind, service, models]);
    if (!this.#paid.has(sort)) this.#paid.set(sort, member);
  }

  #checkCounts(): void {
    for (const [name, { size }] of [
      ['models', this.#models],
      ['references', this.#references],
      ['addresses', this.#addresses],
      ['endpoints', this.#endpoints],
      ['kinds of paid tools', this.#paid],
    ] as const)
      if (size > most[name])
        throw new GatewayError('invalid_value', `The file has more than ${most[name]} ${name}.`);
  }

  #measure(
    line: JsonObject,
    body: JsonObject,
    { model, codec }: { readonly model: string; readonly codec: Codec | undefined },
  ): void {
    const isChat = this.#format === 'chat-completions';
    const endpoint = isChat ? endpointOfLine(line, body) : undefined;
    if (endpoint !== undefined && endpoint.length > longestEndpoint)
      throw new GatewayError('invalid_value', `The url has more than ${longestEndpoint} characters.`);
    if (endpoint !== undefined) this.#endpoints.add(endpoint);
    if (this.#unreadable !== undefined) return;
    try {
      if (codec === undefined) throw new Error('its endpoint is not supported');
      this.#needs.add(model, codec, isChat && model === '' ? { ...body, model: 'model' } : body);
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      this.#unreadable = `request ${this.#count + 1}: ${reason.slice(0, 300).replace(/\.$/, '')}`;
    }
  }

  #giveUp(reason: string): void {
    this.#reason = reason;
    this.#memory.close();
  }
}
