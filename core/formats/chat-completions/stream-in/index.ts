/** Reads a provider's chat completions stream. */
import { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { BlockCounter } from '../../_shared/blocks.ts';
import { unusableResponse } from '../../_shared/upstream-error/index.ts';
import { ChunkDecoder, differing, finishOf, numberOf } from '../../_openai/chunks.ts';
import type { Usage } from '../../../model/usage.ts';
import { ChoiceDecoder, deltaFields } from './choice.ts';
import { writeLogprobs } from '../logprobs.ts';
import { readUsage, usageOf } from '../usage.ts';
import { formatName, mostBlocks, roleDelta, withExtra } from '../wire.ts';
import { sameJson } from '../../../json/same-json.ts';
import { fieldsBeside, setOf } from '../../_shared/fields.ts';
import { noise } from '../../_shared/foreign.ts';

const chunkFields = setOf('id object created model choices usage');
const choiceFields = setOf('index delta message finish_reason');
/** The same where an event carries all that the log probabilities say. */
const scoredFields: ReadonlySet<string> = new Set([...choiceFields, 'logprobs']);

/** Events that put a chunk on the wire again: unknown fields of a chunk ride on one of them. */
const carriers = setOf(
  'text-delta refusal-delta reasoning-delta tool-start tool-delta citation media-end finish',
);

/** Reads a chat completion stream. */
export class ChatStreamDecoder extends ChunkDecoder<ChoiceDecoder> {
  readonly #traits: ModelTraits;
  readonly #blocks = new BlockCounter();
  /** Unknown fields that every chunk repeats, and those that every choice repeats. */
  #shared: JsonObject = {};
  #sharedChoice: JsonObject | undefined;

  constructor(traits: ModelTraits) {
    super(formatName, mostBlocks);
    this.#traits = traits;
  }

  protected usageIn(chunk: JsonObject): Usage | undefined {
    const usage = usageOf(chunk);
    return usage && readUsage(usage, chunk);
  }

  protected head(chunk: JsonObject, choice: JsonObject | undefined): { readonly extra?: Extra } {
    // Differs in each chunk, so it is not one of the shared members.
    const { [noise]: noised, ...shared } = fieldsBeside(chunk, chunkFields);
    this.#shared = shared;
    const own: MutableObject = {};
    if (Object.keys(shared).length > 0) own.chunk = shared;
    if (noised !== undefined) own.$first = { [noise]: noised };
    if (choice !== undefined) {
      this.#sharedChoice = sharedOf(choice);
      if (Object.keys(this.#sharedChoice).length > 0) own.$choice = this.#sharedChoice;
      const delta = deltaOf(choice);
      // The default value is written without being stored.
      if (isRoleOnly(delta) && !sameJson(delta, roleDelta)) own.$role = delta;
    }
    return withExtra(own);
  }

  protected read(
    chunk: JsonObject,
    choices: readonly JsonObject[],
    isFirst: boolean,
    events: GatewayEvent[],
  ): void {
    const own: MutableObject = {};
    difference(chunk, chunkFields, this.#shared, own, 'chunk');
    if (isFirst) delete own.chunk;
    if (choices.length === 0 && isObject(own.chunk)) {
      const { usage: _, ...value } = chunk;
      events.push({ type: 'opaque', format: formatName, value });
    }
    for (const choice of choices) this.#choice(choice, chunk, own, isFirst, events);
  }

  protected stop(answer: ChoiceDecoder, events: GatewayEvent[]): void {
    answer.finish('stop', events);
  }

  #choice(
    choice: JsonObject,
    chunk: JsonObject,
    shared: JsonObject,
    first: boolean,
    out: GatewayEvent[],
  ): void {
    const index = numberOf(choice);
    let decoder = this.answers.get(index);
    const opens = decoder === undefined;
    if (decoder === undefined) {
      if (index >= mostBlocks) throw tooMany();
      decoder = new ChoiceDecoder(index, this.#traits, () => this.#nextBlock());
      this.answers.set(index, decoder);
    }
    if (decoder.finished) return;
    this.#sharedChoice ??= sharedOf(choice);
    const delta = deltaOf(choice);
    const events = decoder.delta(delta, choice.logprobs);
    const word = finishOf(choice);
    if (word !== undefined) decoder.finish(word, events);
    const spoke = events.length > 0;
    const own: MutableObject = { ...shared };
    const known = keepsLogprobs(choice, events) ? choiceFields : scoredFields;
    difference(choice, known, this.#sharedChoice, own, 'choice');
    unread(delta, opens, spoke, own);
    const strays = decoder.takeStrays();
    if (strays.length > 0)
      own.delta = { ...(isObject(own.delta) ? own.delta : {}), reasoning_details: strays };
    if (Object.keys(own).length > 0) attach(events, own, chunk, choice, first && opens && isRoleOnly(delta));
    for (const event of events) out.push(event);
  }

  #nextBlock(): number {
    const block = this.#blocks.next();
    if (block >= mostBlocks) throw tooMany();
    return block;
  }
}

function tooMany(): GatewayError {
  return unusableResponse('sent too many content blocks');
}

/** Returns the delta of a choice. Some servers put a whole message in its place. */
function deltaOf(choice: JsonObject): JsonObject {
  if (isObject(choice.delta)) return choice.delta;
  return isObject(choice.message) ? choice.message : {};
}

/** Returns true for the delta that opens a choice without content. */
function isRoleOnly(delta: JsonObject): boolean {
  if (delta.role === undefined) return false;
  for (const key in delta) {
    if (key === 'role') continue;
    if (!deltaFields.has(key) || !isEmpty(delta[key])) return false;
  }
  return true;
}

/** Returns the members that every choice repeats beside its delta, such as `logprobs: null`. */
function sharedOf(choice: JsonObject): JsonObject {
  const { logprobs, ...shared } = fieldsBeside(choice, choiceFields);
  return logprobs === null ? { logprobs, ...shared } : shared;
}

/** Puts into `own[name]` what differs from the shared fields, and into `own['$without']` what is missing of them. */
function difference(
  value: JsonObject,
  known: ReadonlySet<string>,
  shared: JsonObject,
  own: MutableObject,
  name: 'chunk' | 'choice',
): void {
  const more = differing(value, known, shared);
  if (more !== undefined) own[name] = more;
  let without: string[] | undefined;
  for (const key in shared) {
    if (key in value) continue;
    without ??= [];
    without.push(key);
  }
  if (without !== undefined) own[name === 'chunk' ? '$withoutChunk' : '$withoutChoice'] = without;
}

/** Returns false if the text event has all data of `logprobs`. */
function keepsLogprobs(choice: JsonObject, events: readonly GatewayEvent[]): boolean {
  if (!isObject(choice.logprobs)) return choice.logprobs !== undefined;
  const text = events.find((event) => event.type === 'text-delta');
  return (
    text?.type !== 'text-delta' ||
    text.logprobs === undefined ||
    !sameJson(writeLogprobs(text.logprobs), choice.logprobs)
  );
}

/** Returns the delta fields that became no event: unknown ones under `delta`, empty ones (`content: ""`, a repeated role) under `$delta`. */
function unread(delta: JsonObject, opens: boolean, spoke: boolean, own: MutableObject): void {
  let unknown: MutableObject | undefined;
  let empty: MutableObject | undefined;
  for (const key in delta) {
    if (key === '__proto__') continue;
    const value = delta[key];
    if (!deltaFields.has(key)) {
      unknown ??= {};
      unknown[key] = value;
    } else if (!opens && (key === 'role' || isEmpty(value)) && value !== undefined) {
      empty ??= {};
      empty[key] = value;
    }
  }
  if (unknown !== undefined) own.delta = unknown;
  if (empty !== undefined && (spoke || !isRoleOnly(delta))) own.$delta = empty;
}

function isEmpty(value: JsonValue | undefined): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Adds members that only this format has to an event of the chunk. A chunk without events is passed on as a whole, unless it is empty. */
function attach(
  events: GatewayEvent[],
  own: JsonObject,
  chunk: JsonObject,
  choice: JsonObject,
  isRoleChunk: boolean,
): void {
  const index = events.findIndex(
    (event) => carriers.has(event.type) || (event.type === 'reasoning-end' && event.proof !== undefined),
  );
  const event = events[index];
  if (event !== undefined) {
    const present: Extra | undefined = 'extra' in event ? event.extra : undefined;
    events[index] = {
      ...event,
      extra: { ...present, [formatName]: { ...present?.[formatName], ...own } },
    } as GatewayEvent;
    return;
  }
  const says =
    own.delta !== undefined ||
    own.choice !== undefined ||
    (isObject(own.chunk) && Object.keys(own.chunk).some((key) => key !== noise));
  if (!says || isRoleChunk) return;
  events.push({
    type: 'opaque',
    format: formatName,
    value: { ...chunk, choices: [choice] },
    choice: numberOf(choice),
  });
}
