import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { FrameFold, WireFrame } from '../format.ts';
import { detailEntries } from './reasoning-details.ts';

/** The empty fields of a whole reply as its provider wrote them; without one, the official ones are supplied. */
export interface Shape {
  readonly message: JsonObject;
  readonly choice: JsonObject;
}

interface Answer {
  readonly message: MutableObject;
  readonly fields: MutableObject;
  readonly calls: Map<number, MutableObject>;
  content: string;
  /** Some content was said, be it empty. */
  spoke: boolean;
  shape: Shape | undefined;
}

const chunkFields = new Set(['choices', 'object', 'usage']);
const choiceFields = new Set(['index', 'delta', 'finish_reason', 'logprobs']);

/** Puts the chunks of one reply together into a `chat.completion`. */
export class ChatFold implements FrameFold {
  readonly #top: MutableObject = {};
  readonly #answers = new Map<number, Answer>();
  #usage: JsonObject | undefined;

  frame(frame: WireFrame): void {
    if ('text' in frame) return;
    const chunk = frame.json;
    for (const key in chunk) if (!chunkFields.has(key)) this.#top[key] = chunk[key];
    if (isObject(chunk.usage)) this.#usage = chunk.usage;
    if (!Array.isArray(chunk.choices)) return;
    for (const choice of chunk.choices as readonly JsonValue[]) if (isObject(choice)) this.#choice(choice);
  }

  /** Which empty fields an answer had at its provider. */
  shape(index: number, shape: Shape): void {
    this.#answer(index).shape = shape;
  }

  end(): JsonObject {
    const choices = [...this.#answers]
      .toSorted(([first], [second]) => first - second)
      .map(([index, answer]) => whole(index, answer));
    const { id, created, model, ...rest } = this.#top;
    const reply: MutableObject = { id, object: 'chat.completion', created, model, choices };
    if (this.#usage !== undefined) reply.usage = this.#usage;
    return Object.assign(reply, rest);
  }

  #answer(index: number): Answer {
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = { message: {}, fields: {}, calls: new Map(), content: '', spoke: false, shape: undefined };
      this.#answers.set(index, answer);
    }
    return answer;
  }

  #choice(choice: JsonObject): void {
    const answer = this.#answer(typeof choice.index === 'number' ? choice.index : 0);
    for (const key in choice) if (!choiceFields.has(key)) answer.fields[key] = choice[key];
    if (isObject(choice.logprobs))
      answer.fields.logprobs = joinLogprobs(answer.fields.logprobs, choice.logprobs);
    if (typeof choice.finish_reason === 'string') answer.fields.finish_reason = choice.finish_reason;
    if (isObject(choice.delta)) addDelta(answer, choice.delta);
  }
}

function whole(index: number, answer: Answer): JsonObject {
  const { message, fields, shape } = answer;
  const supplied: MutableObject =
    shape === undefined ? { content: null, refusal: null, annotations: [] } : { ...shape.message };
  const calls = [...answer.calls].toSorted(([first], [second]) => first - second).map(([, call]) => call);
  const silent =
    calls.length > 0 ||
    message.refusal !== undefined ||
    message.audio !== undefined ||
    message.function_call !== undefined;
  if (answer.content !== '') supplied.content = answer.content;
  else if (shape === undefined && answer.spoke && !silent) supplied.content = '';
  const said: MutableObject = { role: 'assistant', ...supplied, ...message };
  if (calls.length > 0) said.tool_calls = calls;
  const { finish_reason: finish, ...rest } = fields;
  return {
    index,
    message: said,
    ...(shape?.choice ?? { logprobs: null }),
    ...rest,
    finish_reason: finish ?? 'stop',
  };
}

function addDelta(answer: Answer, delta: JsonObject): void {
  const { message } = answer;
  for (const key in delta) {
    const value = delta[key];
    switch (key) {
      case 'role':
        break;
      case 'content':
        if (typeof value === 'string') {
          answer.content += value;
          answer.spoke = true;
        }
        break;
      case 'tool_calls':
        if (Array.isArray(value))
          for (const call of value as readonly JsonValue[]) if (isObject(call)) addCall(answer.calls, call);
        break;
      case 'function_call':
        if (isObject(value)) message.function_call = joinStrings(message.function_call, value, 'arguments');
        break;
      case 'audio':
        if (isObject(value)) message.audio = joinAudio(message.audio, value);
        break;
      case 'reasoning_details':
        message.reasoning_details = joinDetails(message.reasoning_details, value);
        break;
      case 'annotations':
      case 'images':
        if (Array.isArray(value) && value.length > 0)
          message[key] = [...listOf(message[key]), ...(value as readonly JsonValue[])];
        break;
      case 'refusal':
      case 'reasoning_content':
      case 'reasoning':
        if (typeof value === 'string' && value !== '')
          message[key] = (typeof message[key] === 'string' ? message[key] : '') + value;
        break;
      default:
        message[key] = value;
    }
  }
}

function addCall(calls: Map<number, MutableObject>, delta: JsonObject): void {
  const { index, function: called, custom, ...rest } = delta;
  const key = typeof index === 'number' ? index : calls.size;
  const call = calls.get(key) ?? {};
  calls.set(key, call);
  Object.assign(call, rest);
  if (isObject(called)) call.function = joinStrings(call.function, called, 'arguments');
  if (isObject(custom)) call.custom = joinStrings(call.custom, custom, 'input');
}

/** Joins two objects; the named field is appended, the others replaced. */
function joinStrings(present: JsonValue | undefined, delta: JsonObject, appended: string): JsonObject {
  const before = isObject(present) ? present : {};
  const more = delta[appended];
  const joined: MutableObject = { ...before, ...delta };
  if (typeof before[appended] === 'string' && typeof more === 'string')
    joined[appended] = before[appended] + more;
  else if (more === undefined && before[appended] !== undefined) joined[appended] = before[appended];
  return joined;
}

function joinAudio(present: JsonValue | undefined, delta: JsonObject): JsonObject {
  const before = isObject(present) ? present : {};
  const joined: MutableObject = { ...joinStrings(present, delta, 'transcript') };
  if (typeof before.data === 'string' && typeof delta.data === 'string')
    joined.data = joinBase64(before.data, delta.data);
  return joined;
}

/** A piece that ends in padding cannot simply be followed by another. */
function joinBase64(first: string, second: string): string {
  if (!first.endsWith('=')) return first + second;
  return Buffer.concat([Buffer.from(first, 'base64'), Buffer.from(second, 'base64')]).toString('base64');
}

/** Entries of one `index` and type are pieces of one entry, as providers stream them. */
function joinDetails(present: JsonValue | undefined, value: JsonValue | undefined): JsonValue {
  const joined = [...detailEntries(present)];
  for (const entry of detailEntries(value)) {
    const last = joined.at(-1);
    const field = typeof entry.text === 'string' ? 'text' : 'summary';
    const text = last?.[field];
    const more = entry[field];
    const same =
      last !== undefined &&
      entry.index !== undefined &&
      entry.index === last.index &&
      entry.type === last.type;
    if (
      same &&
      entry.type !== 'reasoning.encrypted' &&
      typeof text === 'string' &&
      typeof more === 'string' &&
      last?.signature === undefined
    ) {
      joined[joined.length - 1] = { ...last, ...entry, [field]: text + more };
    } else joined.push(entry);
  }
  return joined;
}

function joinLogprobs(present: JsonValue | undefined, delta: JsonObject): JsonObject {
  if (!isObject(present)) return delta;
  const joined: MutableObject = { ...present, ...delta };
  for (const key of ['content', 'refusal']) {
    if (Array.isArray(present[key])) joined[key] = [...listOf(present[key]), ...listOf(delta[key])];
  }
  return joined;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}
