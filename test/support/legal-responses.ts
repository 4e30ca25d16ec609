import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

/** Returns the problems that clients would have with a stream of this format; empty if there are none. */
export function checkLegal(frames: WireFrame[]): string[] {
  const checker = new Checker();
  frames.forEach((frame, index) => checker.frame(frame, index));
  return checker.end();
}

type EventType = ResponseStreamEvent['type'];
type Fields<Type extends EventType> = Exclude<
  keyof Extract<ResponseStreamEvent, { readonly type: Type }>,
  'type' | 'sequence_number'
>;
type Required<Type extends EventType> = readonly {
  [Field in Fields<Type>]-?: object extends Pick<
    Extract<ResponseStreamEvent, { readonly type: Type }>,
    Field & keyof Extract<ResponseStreamEvent, { readonly type: Type }>
  >
    ? never
    : Field;
}[Fields<Type>][];

const inItem = ['item_id', 'output_index'] as const;
const inContent = [...inItem, 'content_index'] as const;
const inSummary = [...inItem, 'summary_index'] as const;

/** The fields that the official types require of the events that the gateway writes by itself. The compiler holds the table to the types. */
const required = {
  'response.created': ['response'],
  'response.in_progress': ['response'],
  'response.completed': ['response'],
  'response.incomplete': ['response'],
  'response.failed': ['response'],
  error: ['code', 'message', 'param'],
  'response.output_item.added': ['output_index', 'item'],
  'response.output_item.done': ['output_index', 'item'],
  'response.content_part.added': [...inContent, 'part'],
  'response.content_part.done': [...inContent, 'part'],
  'response.output_text.delta': [...inContent, 'delta', 'logprobs'],
  'response.output_text.done': [...inContent, 'text', 'logprobs'],
  'response.output_text.annotation.added': [...inContent, 'annotation_index', 'annotation'],
  'response.refusal.delta': [...inContent, 'delta'],
  'response.refusal.done': [...inContent, 'refusal'],
  'response.function_call_arguments.delta': [...inItem, 'delta'],
  'response.function_call_arguments.done': [...inItem, 'arguments'],
  'response.custom_tool_call_input.delta': [...inItem, 'delta'],
  'response.custom_tool_call_input.done': [...inItem, 'input'],
  'response.reasoning_summary_part.added': [...inSummary, 'part'],
  'response.reasoning_summary_part.done': [...inSummary, 'part'],
  'response.reasoning_summary_text.delta': [...inSummary, 'delta'],
  'response.reasoning_summary_text.done': [...inSummary, 'text'],
  'response.reasoning_text.delta': [...inContent, 'delta'],
  'response.reasoning_text.done': [...inContent, 'text'],
  'response.image_generation_call.in_progress': inItem,
  'response.image_generation_call.generating': inItem,
  'response.image_generation_call.completed': inItem,
} as const satisfies { readonly [Type in EventType]?: Required<Type> };

/** The fields that every response object must have for typed clients. */
const responseFields = [
  'id',
  'object',
  'created_at',
  'error',
  'incomplete_details',
  'instructions',
  'metadata',
  'model',
  'output',
  'parallel_tool_calls',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
] as const;

const finals: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
]);

interface Piece {
  readonly index: number;
  text: string;
  annotations: JsonValue[];
  /** The text, or the part, was said whole. */
  announcedText: string | undefined;
}

interface Item {
  readonly index: number;
  readonly added: JsonObject;
  readonly parts: JsonObject[];
  readonly summary: JsonObject[];
  part: Piece | undefined;
  input: string;
  announcedInput: string | undefined;
}

class Checker {
  readonly #problems: string[] = [];
  readonly #output: JsonObject[] = [];
  readonly #ids = new Set<string>();
  readonly #callIds = new Set<string>();
  #report: (problem: string) => void = () => {};
  #id: unknown;
  #item: Item | undefined;
  #over = false;
  #broken = false;
  /** The stream said `[DONE]`, which stands behind its last event, once, or is left out by providers. */
  #closed = false;

  frame(frame: WireFrame, at: number): void {
    this.#report = (problem) => void this.#problems.push(`frame ${at}: ${problem}`);
    if ('text' in frame) return this.#text(frame.text);
    const { json } = frame;
    if (frame.event !== json.type) this.#report(`event ${frame.event} holds ${String(json.type)}`);
    if (json.sequence_number !== at) this.#report(`sequence_number ${String(json.sequence_number)}`);
    if (this.#over || this.#closed) this.#report(`${String(json.type)} comes after the end`);
    if (this.#broken && json.type !== 'response.failed') this.#report(`${String(json.type)} after an error`);
    this.#official(json);
    if (json.type === 'error') return this.#error(json);
    this.#order(json, at);
    this.#known(json);
  }

  #text(text: string): void {
    if (text !== '[DONE]' || !this.#over || this.#closed) this.#report(`text ${text}`);
    this.#closed = true;
  }

  end(): string[] {
    if (!this.#over && !this.#broken) this.#problems.push('no last event');
    return this.#problems;
  }

  #official(json: JsonObject): void {
    const fields = Object.hasOwn(required, String(json.type))
      ? required[json.type as keyof typeof required]
      : [];
    for (const field of fields)
      if (json[field] === undefined) this.#report(`${String(json.type)} without ${field}`);
  }

  #error(json: JsonObject): void {
    this.#broken = true;
    if (typeof json.message !== 'string') this.#report('an error without a message');
  }

  #order(json: JsonObject, at: number): void {
    const { type } = json;
    if ((at === 0) !== (type === 'response.created')) this.#report(`${String(type)} in place ${at}`);
    if ((at === 1) !== (type === 'response.in_progress')) this.#report(`${String(type)} in place ${at}`);
  }

  #known(json: JsonObject): void {
    const { type } = json;
    if (type === 'response.created' || type === 'response.in_progress' || finals.has(type))
      return this.#lifecycle(json);
    if (type === 'response.output_item.added') return this.#added(json);
    const item = this.#item;
    if (json.output_index === undefined) return;
    if (item === undefined || json.output_index !== item.index)
      return this.#report(`${String(type)} of an item that is not open`);
    if (json.item_id !== undefined && json.item_id !== item.added.id)
      this.#report(`item_id ${String(json.item_id)}`);
    if (type === 'response.output_item.done') return this.#done(json, item);
    if (item.added.type === 'message' || item.added.type === 'reasoning') this.#part(json, item);
    else this.#call(json, item);
  }

  #lifecycle({ type, response }: JsonObject): void {
    if (!isObject(response)) return this.#report('no response');
    for (const field of responseFields) if (response[field] === undefined) this.#report(`no ${field}`);
    if (response.object !== 'response') this.#report(`object ${String(response.object)}`);
    if (typeof response.id !== 'string' || !/^resp_./.test(response.id))
      this.#report(`id ${String(response.id)}`);
    this.#id ??= response.id;
    if (response.id !== this.#id) this.#report('the id changed');
    if (!finals.has(type)) {
      if (response.status !== 'in_progress') this.#report(`status ${String(response.status)}`);
      if (JSON.stringify(response.output) !== '[]') this.#report('output at the beginning');
      return;
    }
    this.#over = true;
    if (this.#item !== undefined && type !== 'response.failed') this.#report('an item is still open');
    if (`response.${String(response.status)}` !== type) this.#report(`status ${String(response.status)}`);
    if (!same(response.output, this.#output)) this.#report('the output is not what was streamed');
    if ((type === 'response.incomplete') !== isObject(response.incomplete_details))
      this.#report('incomplete_details');
    if ((type === 'response.failed') !== isObject(response.error)) this.#report('error');
    if (type !== 'response.failed') this.#usage(response.usage);
  }

  #usage(usage: JsonValue | undefined): void {
    if (!isObject(usage)) return this.#report('no usage');
    for (const name of ['input_tokens', 'output_tokens', 'total_tokens'])
      if (typeof usage[name] !== 'number') this.#report(`usage.${name} is no number`);
    for (const name of ['input_tokens_details', 'output_tokens_details'])
      if (!isObject(usage[name])) this.#report(`usage.${name} is missing`);
  }

  #added({ output_index: index, item }: JsonObject): void {
    if (this.#item !== undefined) this.#report('an item is added inside another');
    if (index !== this.#output.length) this.#report(`output_index ${String(index)}`);
    if (!isObject(item) || typeof item.type !== 'string') return this.#report('an item without a type');
    if (typeof item.id !== 'string' || item.id === '') this.#report('an item without an id');
    else if (this.#ids.has(item.id)) this.#report(`item id ${item.id} twice`);
    else this.#ids.add(item.id);
    if (typeof item.call_id === 'string' && item.type.endsWith('_call')) {
      if (this.#callIds.has(item.call_id)) this.#report(`call id ${item.call_id} twice`);
      this.#callIds.add(item.call_id);
    }
    if (item.type === 'message' && !same(item.content, [])) this.#report('a message does not begin empty');
    if (item.type === 'reasoning' && !same(item.summary, [])) this.#report('reasoning does not begin empty');
    this.#item = {
      index: this.#output.length,
      added: item,
      parts: [],
      summary: [],
      part: undefined,
      input: '',
      announcedInput: undefined,
    };
  }

  #done({ item: done }: JsonObject, item: Item): void {
    this.#item = undefined;
    if (!isObject(done)) return this.#report('no item');
    this.#output.push(done);
    if (item.part !== undefined) this.#report('a part is still open');
    for (const field of ['id', 'type', 'call_id', 'name'])
      if (done[field] !== item.added[field]) this.#report(`${field} changed`);
    switch (done.type) {
      case 'message':
        if (!same(done.content, item.parts)) this.#report('content is not what was streamed');
        break;
      case 'reasoning':
        if (!same(done.summary, item.summary)) this.#report('summary is not what was streamed');
        if (!same(done.content ?? [], item.parts)) this.#report('content is not what was streamed');
        break;
      case 'function_call':
      case 'custom_tool_call': {
        const input = done.type === 'function_call' ? done.arguments : done.input;
        if (item.announcedInput === undefined) this.#report('the input was not said whole');
        if (input !== item.input || item.announcedInput !== item.input)
          this.#report('the input is not what was streamed');
        break;
      }
      default:
    }
  }

  #part(json: JsonObject, item: Item): void {
    // An event that is not known yet may stand anywhere in an item.
    if (!Object.hasOwn(required, String(json.type))) return;
    const type = String(json.type).slice('response.'.length);
    const summary = type.startsWith('reasoning_summary');
    const list = summary ? item.summary : item.parts;
    const index = summary ? json.summary_index : json.content_index;
    if (index !== undefined && index !== list.length) this.#report(`${type} of part ${String(index)}`);
    if (type.endsWith('part.added')) {
      if (item.part !== undefined) this.#report('a part begins inside another');
      item.part = { index: list.length, text: '', annotations: [], announcedText: undefined };
      return;
    }
    const { part } = item;
    if (part === undefined) return this.#report(`${type} without a part`);
    if (type.endsWith('.delta')) {
      if (part.announcedText !== undefined) this.#report('a piece after the whole');
      part.text += String(json.delta);
    } else if (type === 'output_text.annotation.added') {
      if (json.annotation_index !== part.annotations.length) this.#report('annotation_index');
      part.annotations.push(json.annotation ?? null);
    } else if (type.endsWith('part.done')) this.#partDone(json, item, part, list);
    else if (type.endsWith('.done')) {
      part.announcedText = String(json.text ?? json.refusal);
      if (part.announcedText !== part.text) this.#report('the whole is not the sum of the pieces');
    }
  }

  #partDone({ part: done }: JsonObject, item: Item, part: Piece, list: JsonObject[]): void {
    item.part = undefined;
    if (!isObject(done)) return this.#report('no part');
    list.push(done);
    if (part.announcedText === undefined) this.#report('a part ends before its whole text was said');
    if ((done.text ?? done.refusal) !== part.text) this.#report('the part is not the sum of the pieces');
    if (!same(done.annotations ?? [], part.annotations))
      this.#report('annotations are not what was streamed');
  }

  #call({ type, delta, arguments: whole, input }: JsonObject, item: Item): void {
    if (
      type === 'response.function_call_arguments.delta' ||
      type === 'response.custom_tool_call_input.delta'
    ) {
      if (item.announcedInput !== undefined) this.#report('a piece after the whole');
      item.input += String(delta);
    } else if (
      type === 'response.function_call_arguments.done' ||
      type === 'response.custom_tool_call_input.done'
    )
      item.announcedInput = String(whole ?? input);
  }
}

function same(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));
}

function sorted(value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return (value as JsonValue[]).map((item) => sorted(item) ?? null);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  );
}
