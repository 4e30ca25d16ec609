/** Chunks of a completion stream, in both directions. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { Frame, ReplyContext, StreamDecoder, StreamEncoder, WireFrame } from '../../sdk/format.ts';
import type { GatewayEvent, HeadEvent } from '../../model/event.ts';
import { parseJson } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { Kept } from '../_shared/extra.ts';
import { defined, isText, objectsOf, secondOf, textOf } from '../_shared/fields.ts';
import { Losses } from '../_shared/losses.ts';
import { sameJson } from '../../json/same-json.ts';
import {
  upstreamError,
  truncatedResponse,
  isNamed,
  tellsError,
  unusableResponse,
} from '../_shared/upstream-error/index.ts';
import { chatErrorBody } from './errors.ts';
import { completionId } from './ids.ts';

const nothing: readonly WireFrame[] = [];
const noFields: JsonObject = {};

/** Reads the chunks of a completion's stream, official or not quite. */
export abstract class ChunkDecoder<Answer extends { readonly finished: boolean }> implements StreamDecoder {
  /** The answers so far, by their number. */
  protected readonly answers = new Map<number, Answer>();
  readonly #format: string;
  readonly #mostHeld: number;
  /** Chunks without an answer that came before the reply's id was known. */
  #held: JsonObject[] = [];
  #begun = false;
  #done = false;

  /** `mostHeld` of the chunks that come before the reply are kept. */
  constructor(format: string, mostHeld: number) {
    this.#format = format;
    this.#mostHeld = mostHeld;
  }

  /** Returns the members of the response's head that only this format has. */
  protected abstract head(chunk: JsonObject, choice: JsonObject | undefined): Kept;
  /** Returns the events of a chunk's choices. `isFirst`: the chunk is the first of the reply. */
  protected abstract read(
    chunk: JsonObject,
    choices: readonly JsonObject[],
    isFirst: boolean,
    events: GatewayEvent[],
  ): void;
  protected abstract usageIn(chunk: JsonObject): Usage | undefined;
  /** Ends an answer that has not ended. */
  protected abstract stop(answer: Answer, events: GatewayEvent[]): void;

  frame({ data, event }: Frame): readonly GatewayEvent[] {
    if (this.#done || data === '') return [];
    if (data === '[DONE]' || data.trim() === '[DONE]') {
      this.#done = true;
      return [];
    }
    const chunk = parse(data);
    if (!isObject(chunk)) throw Array.isArray(chunk) ? upstreamError(200, data) : unreadable();
    if (isError(chunk, event)) throw upstreamError(200, data);
    return this.chunk(chunk);
  }

  /** Returns the events of one parsed chunk. */
  chunk(chunk: JsonObject): readonly GatewayEvent[] {
    const choices = objectsOf(chunk.choices);
    const usage = this.usageIn(chunk);
    const isFirst = !this.#begun;
    if (isFirst && choices.length === 0 && usage === undefined && !isText(chunk.id)) {
      if (this.#held.length < this.#mostHeld) this.#held.push(chunk);
      return [];
    }
    const events: GatewayEvent[] = [];
    if (isFirst) this.#begin(chunk, choices[0], events);
    this.read(chunk, choices, isFirst, events);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    return events;
  }

  end(): readonly GatewayEvent[] {
    const events: GatewayEvent[] = [];
    const open = [...this.answers.values()].filter(({ finished }) => !finished);
    if (!this.#done && (open.length > 0 || this.answers.size === 0)) throw truncatedResponse();
    for (const answer of open) this.stop(answer, events);
    return events;
  }

  #begin(chunk: JsonObject, choice: JsonObject | undefined, events: GatewayEvent[]): void {
    this.#begun = true;
    events.push({
      type: 'head',
      id: textOf(chunk.id),
      model: textOf(chunk.model),
      ...defined({ created: secondOf(chunk.created) }),
      ...this.head(chunk, choice),
    });
    for (const value of this.#held) events.push({ type: 'opaque', format: this.#format, value });
    this.#held = [];
  }
}

/** Returns the number of a chunk's answer. */
export function numberOf({ index }: JsonObject): number {
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : 0;
}

/** Returns the fields that are neither known nor the same as those that every chunk repeats; undefined for most chunks. */
export function differing(
  value: JsonObject,
  known: ReadonlySet<string>,
  shared: JsonObject,
): MutableObject | undefined {
  let fields: MutableObject | undefined;
  for (const key in value) {
    if (known.has(key) || key === '__proto__' || (key in shared && sameJson(value[key], shared[key])))
      continue;
    fields ??= {};
    fields[key] = value[key];
  }
  return fields;
}

/** Returns the provider's finish reason; undefined while the answer goes on. Throws if the reason is an error. */
export function finishOf({ finish_reason: word }: JsonObject): string | undefined {
  if (!isText(word)) return undefined;
  if (word.toLowerCase() === 'error')
    throw upstreamError(200, JSON.stringify({ message: 'The upstream broke off the response.' }));
  return word;
}

/** Throws for a whole reply that is an error, or has no answer. */
export function checkCompletion(body: JsonObject): void {
  const { choices } = body;
  const errorFields = ['message', 'msg', 'detail', 'code', 'base_resp', 'errors'];
  if (tellsError(body) || (!Array.isArray(choices) && errorFields.some((key) => key in body)))
    throw upstreamError(200, JSON.stringify(body));
  if (!Array.isArray(choices) || choices.length === 0) throw unusableResponse('sent no answer');
}

function parse(data: string): JsonValue {
  try {
    return parseJson(data);
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause?: unknown): GatewayError {
  return unusableResponse('sent an event that cannot be read', cause);
}

/** Returns true for `{"error": …}`, an event named `error`, or an error without its envelope. */
function isError(chunk: JsonObject, event: string | undefined): boolean {
  if (event === 'error' || chunk.object === 'error' || chunk.type === 'error') return true;
  if (tellsError(chunk)) return true;
  if (isNamed(chunk) || chunk.choices !== undefined || chunk.usage !== undefined || chunk.id !== undefined)
    return false;
  return [chunk.message, chunk.msg, chunk.detail, chunk.error_msg].some(isText);
}

/** Names that a format uses in its chunks. */
interface ChunkWords {
  readonly format: string;
  /** Prefix of a response's id. */
  readonly prefix: string;
  /** Value of `object` in a chunk. */
  readonly object: string;
  readonly usage: (usage: Usage | undefined) => JsonObject;
}

/** Top-level members of every chunk, and members of the response that only this format has. */
interface Head {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly own: JsonObject;
}

/** Encodes the chunks of a streamed completion: one finish for each answer, usage if the client requested it, and `[DONE]`. */
export abstract class ChunkEncoder<Answer extends { readonly finished: boolean }> implements StreamEncoder {
  /** The answers that have begun, by their number. */
  protected readonly answers = new Map<number, Answer>();
  protected readonly losses: Losses;
  protected readonly context: ReplyContext;
  /** True if the client requested usage. All chunks but the last then have `usage: null`. */
  readonly #asksUsage: boolean;
  readonly #words: ChunkWords;
  #head: Head | undefined;
  #usage: Usage | undefined;
  #over = false;

  constructor(words: ChunkWords, context: ReplyContext, asksUsage?: boolean) {
    const { stream_options: options } = context.body;
    this.context = context;
    this.losses = new Losses(words.format, context);
    this.#words = words;
    this.#asksUsage = asksUsage ?? (isObject(options) && options.include_usage === true);
  }

  protected abstract write(event: GatewayEvent): readonly WireFrame[];
  /** Returns the answer of this number, and begins it if necessary. */
  protected abstract answer(index: number, frames: WireFrame[]): Answer;
  /** Ends an answer that has not ended. */
  protected abstract stop(index: number, answer: Answer): WireFrame;

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over) return nothing;
    if (event.type !== 'usage') return this.write(event);
    this.#usage = event.usage;
    return nothing;
  }

  end(): readonly WireFrame[] {
    if (this.#over) return nothing;
    const frames: WireFrame[] = [];
    if (this.answers.size === 0) this.answer(0, frames);
    for (const [index, answer] of this.answers) if (!answer.finished) frames.push(this.stop(index, answer));
    if (this.#asksUsage)
      frames.push({ json: { ...this.top(), choices: [], usage: this.#words.usage(this.#usage) } });
    frames.push({ text: '[DONE]' });
    this.#over = true;
    return frames;
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return nothing;
    this.#over = true;
    return [{ json: chatErrorBody(error) }];
  }

  keepAlive(): readonly WireFrame[] {
    return nothing;
  }

  /** Begins the response if it has not begun. */
  protected begin(head?: HeadEvent, own: JsonObject = noFields): Head {
    return (this.#head ??= {
      id: completionId(this.#words.prefix, head?.id ?? ''),
      created: head?.created ?? this.context.created,
      own,
    });
  }

  protected get begun(): boolean {
    return this.#head !== undefined;
  }

  /** Returns the top-level members of a chunk. `without`: shared fields that this chunk does not have. */
  protected top(without?: JsonValue): MutableObject {
    const top = this.#named({});
    spreadShared(top, this.begin().own.chunk, without);
    return top;
  }

  /** Returns a chunk with these answers, whose top it is. */
  protected chunk(top: MutableObject, choices: readonly JsonObject[]): WireFrame {
    top.choices = choices;
    if (this.#asksUsage) top.usage = null;
    return { json: top };
  }

  /** Returns an original chunk with the id and model of this response. */
  protected renamed(value: JsonObject, choices: readonly JsonObject[]): WireFrame {
    return this.chunk(this.#named({ ...value }), choices);
  }

  #named(top: MutableObject): MutableObject {
    const { id, created } = this.begin();
    top.id = id;
    top.object = this.#words.object;
    top.created = created;
    top.model = this.context.model;
    return top;
  }

  /** Reports events that this format cannot carry as dropped. */
  protected drop(name: string): readonly WireFrame[] {
    this.losses.drop(name);
    return nothing;
  }
}

/** Puts the shared fields on a chunk or an answer, but for those that it has not. */
export function spreadShared(
  target: MutableObject,
  shared: JsonValue | undefined,
  without: JsonValue | undefined,
): void {
  if (!isObject(shared)) return;
  const left: readonly unknown[] = Array.isArray(without) ? without : [];
  for (const key in shared) if (!left.includes(key)) target[key] = shared[key];
}
