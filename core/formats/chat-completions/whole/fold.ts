/** Merges the chunks of a chat completions stream into one `chat.completion`. */
import { joinBase64 } from '../../_shared/base64.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { objectsOf, setOf } from '../../_shared/fields.ts';
import { joinLists } from '../../_shared/join-lists.ts';
import { CompletionFold } from '../../_openai/whole.ts';

/** The empty fields of a whole reply as its provider wrote them; without one, the official ones are supplied. */
export interface Shape {
  readonly message: JsonObject;
  readonly choice: JsonObject;
}

interface Answer {
  readonly message: MutableObject;
  readonly fields: MutableObject;
  readonly calls: Map<number, MutableObject>;
  /** Growing lists by name. They are copies, because the lists of the chunks must not be changed. */
  readonly lists: Map<string, JsonValue[]>;
  /** Pieces of the audio's base64. */
  readonly sound: string[];
  content: string;
  /** True after a delta with content, even an empty one. */
  spoke: boolean;
  shape: Shape | undefined;
}

const choiceFields = setOf('index delta finish_reason logprobs');

/** Puts the chunks of one reply together into a `chat.completion`. */
export class ChatFold extends CompletionFold<Answer> {
  constructor() {
    super('chat.completion');
  }

  /** Sets the empty fields that an answer had at its provider. */
  shape(index: number, shape: Shape): void {
    this.answer(index).shape = shape;
  }

  protected begin(): Answer {
    return {
      message: {},
      fields: {},
      calls: new Map(),
      lists: new Map(),
      sound: [],
      content: '',
      spoke: false,
      shape: undefined,
    };
  }

  protected add(answer: Answer, choice: JsonObject): void {
    for (const key in choice) if (!choiceFields.has(key)) answer.fields[key] = choice[key];
    if (isObject(choice.logprobs))
      answer.fields.logprobs = joinLists(answer.fields.logprobs, choice.logprobs);
    if (typeof choice.finish_reason === 'string') answer.fields.finish_reason = choice.finish_reason;
    if (isObject(choice.delta)) addDelta(answer, choice.delta);
  }

  protected whole(index: number, answer: Answer): JsonObject {
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
    const folded: MutableObject = { role: 'assistant', ...supplied, ...message };
    if (isObject(message.audio) && answer.sound.length > 0)
      folded.audio = { ...message.audio, data: joinBase64(answer.sound) };
    if (calls.length > 0) folded.tool_calls = calls;
    const { finish_reason: finish, ...rest } = fields;
    return {
      index,
      message: folded,
      ...(shape?.choice ?? { logprobs: null }),
      ...rest,
      finish_reason: finish ?? 'stop',
    };
  }
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
        if (!isObject(value)) break;
        message.audio = joinStrings(message.audio, value, 'transcript');
        if (typeof value.data === 'string') answer.sound.push(value.data);
        break;
      case 'reasoning_details':
        message.reasoning_details = addDetails(listOf(answer, key), value);
        break;
      case 'annotations':
      case 'images':
        if (Array.isArray(value) && value.length > 0) {
          const list = listOf(answer, key);
          for (const one of value as readonly JsonValue[]) list.push(one);
          message[key] = list;
        }
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

/** Entries of one `index` and type are pieces of one entry, as providers stream them. */
function addDetails(joined: JsonValue[], value: JsonValue | undefined): JsonValue {
  for (const entry of objectsOf(value)) {
    const before = joined.at(-1);
    const last = isObject(before) ? before : undefined;
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

/** Returns the answer's own list of this name, which may be added to. */
function listOf({ lists }: Answer, name: string): JsonValue[] {
  let list = lists.get(name);
  if (list === undefined) lists.set(name, (list = []));
  return list;
}
