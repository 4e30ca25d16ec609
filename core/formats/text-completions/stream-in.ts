import type { GatewayEvent } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { BlockCounter, endOf } from '../_shared/blocks.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { cutShort } from '../_shared/stream-frames.ts';
import { isNamed, tellsError } from '../_shared/told-error.ts';
import { upstreamError } from '../_shared/upstream-error.ts';
import type { Frame, StreamDecoder } from '../../sdk/format.ts';
import { readUsage } from './usage.ts';
import { formatName, mostChoices } from './wire.ts';
import { unusable } from '../_shared/unusable.ts';
import { readFinish } from '../_openai/finish.ts';
import { setOf } from '../_shared/extra.ts';

const chunkFields = setOf('id object created model choices usage');
const choiceFields = setOf('index text finish_reason');
/** A random string on every chunk: no part of the answer. */
const noise = 'obfuscation';
/** Most chunks without an answer that are held until the reply's id is known. */
const mostHeld = 64;

interface Answer {
  block: number | undefined;
  finished: boolean;
}

/** Reads a stream of text completions. */
export class TextStreamDecoder implements StreamDecoder {
  readonly #blocks = new BlockCounter();
  readonly #answers = new Map<number, Answer>();
  /** Chunks without an answer that came before the reply's id was known. */
  #held: JsonObject[] = [];
  #begun = false;
  #done = false;
  /** Unknown fields that every chunk repeats. */
  #shared: JsonObject = {};

  frame(frame: Frame): readonly GatewayEvent[] {
    const { data } = frame;
    if (this.#done || data === '') return [];
    if (data.trim() === '[DONE]') {
      this.#done = true;
      return [];
    }
    const chunk = parse(data);
    if (isError(chunk, frame.event)) throw upstreamError(200, data);
    return this.chunk(chunk);
  }

  /** The events of one parsed chunk. */
  chunk(chunk: JsonObject): readonly GatewayEvent[] {
    const choices = Array.isArray(chunk.choices)
      ? (chunk.choices as readonly JsonValue[]).filter(isObject)
      : [];
    const usage = isObject(chunk.usage) ? chunk.usage : undefined;
    if (!this.#begun && choices.length === 0 && usage === undefined && !isText(chunk.id)) {
      if (this.#held.length < mostHeld) this.#held.push(chunk);
      return [];
    }
    const events: GatewayEvent[] = [];
    const first = !this.#begun;
    if (first) this.#begin(chunk, events);
    const unknown = first ? {} : this.#unshared(chunk);
    if (choices.length === 0 && Object.keys(unknown).length > 0) {
      const { usage: _, ...value } = chunk;
      events.push({ type: 'opaque', format: formatName, value });
    }
    for (const choice of choices) this.#choice(choice, unknown, events);
    if (usage !== undefined) events.push({ type: 'usage', usage: readUsage(usage) });
    return events;
  }

  end(): readonly GatewayEvent[] {
    const events: GatewayEvent[] = [];
    const open = [...this.#answers].filter(([, { finished }]) => !finished);
    if (!this.#done && (open.length > 0 || this.#answers.size === 0)) {
      throw cutShort();
    }
    for (const [index, answer] of open) finish(index, answer, 'stop', undefined, events);
    return events;
  }

  #begin(chunk: JsonObject, events: GatewayEvent[]): void {
    this.#begun = true;
    this.#shared = rest(chunk, chunkFields);
    events.push({
      type: 'head',
      id: isText(chunk.id) ? chunk.id : '',
      model: isText(chunk.model) ? chunk.model : '',
      ...(typeof chunk.created === 'number' && chunk.created > 0 ? { created: chunk.created } : {}),
      // An echo of the prompt is in the text already.
      extra: { [formatName]: { $native: true, ...(isEmpty(this.#shared) ? {} : { chunk: this.#shared }) } },
    });
    for (const value of this.#held) events.push({ type: 'opaque', format: formatName, value });
    this.#held = [];
  }

  #unshared(chunk: JsonObject): JsonObject {
    const unknown: MutableObject = {};
    const all = rest(chunk, chunkFields);
    for (const key in all)
      if (JSON.stringify(all[key]) !== JSON.stringify(this.#shared[key])) unknown[key] = all[key];
    return unknown;
  }

  #choice(choice: JsonObject, chunk: JsonObject, events: GatewayEvent[]): void {
    const index = indexOf(choice);
    if (index >= mostChoices) throw unusable('sent too many answers');
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = { block: undefined, finished: false };
      this.#answers.set(index, answer);
    }
    if (answer.finished) return;
    const beside = rest(choice, choiceFields);
    // That there are none is what every chunk says.
    if (beside.logprobs === null) delete beside.logprobs;
    let extra = extraOf(beside, chunk);
    if (isText(choice.text)) {
      if (answer.block === undefined) {
        answer.block = this.#blocks.next();
        events.push({ type: 'text-start', block: answer.block, choice: index });
      }
      events.push({ type: 'text-delta', block: answer.block, choice: index, text: choice.text, ...extra });
      extra = noExtra;
    }
    if (isText(choice.finish_reason)) {
      if (choice.finish_reason.toLowerCase() === 'error')
        throw upstreamError(200, JSON.stringify({ message: 'The upstream broke off the answer.' }));
      finish(index, answer, choice.finish_reason, extra, events);
    } else if (extra.extra !== undefined) {
      events.push({
        type: 'opaque',
        format: formatName,
        value: { ...chunk, choices: [choice] },
        choice: index,
      });
    }
  }
}

function finish(
  choice: number,
  answer: Answer,
  raw: string,
  extra: { readonly extra?: Extra } | undefined,
  events: GatewayEvent[],
): void {
  answer.finished = true;
  if (answer.block !== undefined) events.push(endOf('text', answer.block, choice));
  events.push({ type: 'finish', choice, reason: readFinish(raw), raw, format: formatName, ...extra });
}

const noExtra: { readonly extra?: Extra } = {};

function extraOf(choice: JsonObject, chunk: JsonObject): { readonly extra?: Extra } {
  if (isEmpty(choice) && isEmpty(chunk)) return noExtra;
  return {
    extra: {
      [formatName]: { ...(isEmpty(choice) ? {} : { choice }), ...(isEmpty(chunk) ? {} : { chunk }) },
    },
  };
}

/** True for `{"error": …}`, an event named `error`, or an error without its envelope. */
function isError(chunk: JsonObject, event: string | undefined): boolean {
  if (event === 'error' || chunk.object === 'error' || chunk.type === 'error') return true;
  if (tellsError(chunk)) return true;
  if (isNamed(chunk) || chunk.choices !== undefined || chunk.usage !== undefined || chunk.id !== undefined)
    return false;
  return [chunk.message, chunk.msg, chunk.detail, chunk.error_msg].some(isText);
}

function parse(data: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch (cause) {
    throw unusable('sent an event that cannot be read', cause);
  }
  if (Array.isArray(value)) throw upstreamError(200, data);
  if (!isObject(value)) throw unusable('sent an event that cannot be read');
  return value;
}

function rest(value: JsonObject, known: ReadonlySet<string>): MutableObject {
  const fields: MutableObject = {};
  for (const key in value)
    if (!known.has(key) && key !== '__proto__' && key !== noise) fields[key] = value[key];
  return fields;
}

function indexOf({ index }: JsonObject): number {
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 ? index : 0;
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '';
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}
