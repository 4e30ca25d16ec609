/** Gathers the fragments of tool calls in a provider's stream. */
import { randomUUID } from 'node:crypto';
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra, Proof } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { extraContentSignature, readDetail } from '../reasoning/details.ts';
import { formatName, leftovers, withExtra } from '../wire.ts';
import { defined, setOf } from '../../_shared/fields.ts';
import { unusableResponse } from '../../_shared/upstream-error/index.ts';

const callFields = setOf('index id type function custom');
/** A later fragment that repeats the type keeps it. */
const laterFields = setOf('index id function custom');
const innerFields = setOf('name arguments input');

interface OpenCall {
  readonly block: number;
  /** As the provider wrote it; undefined when it gave none. */
  readonly id: string | undefined;
  readonly custom: boolean;
  name: string;
  /** The start event went out: the name is known. */
  started: boolean;
  /** Arguments that came before the name. */
  held: string;
  /** Some arguments were sent. */
  spoke: boolean;
  ended: boolean;
  proof: Proof | undefined;
}

/**
 * The tool calls of one answer, put together from fragments: by `index` where the provider writes it, else by id, else as the next call.
 * A fragment that names another id or a name of its own under a known index is another call, as some providers number every call 0.
 */
export class ToolCalls {
  readonly #choice: number;
  readonly #nextBlock: () => number;
  #last: OpenCall | undefined;
  #count = 0;
  /** Calls that may still get arguments, in their order. */
  #unended: OpenCall[] = [];
  readonly #byId = new Map<string, OpenCall>();
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #details = new Map<string, JsonObject>();

  constructor(choice: number, nextBlock: () => number) {
    this.#choice = choice;
    this.#nextBlock = nextBlock;
  }

  /** True when the answer has called a tool. */
  get any(): boolean {
    return this.#count > 0;
  }

  /** True while some call may still get arguments. */
  get open(): boolean {
    return this.#unended.length > 0;
  }

  /** Keeps a `reasoning_details` entry for the call that it names, which comes later (or in the same chunk). False when the call has begun. */
  keepDetail(id: string, entry: JsonObject): boolean {
    if (this.#byId.get(id)?.started === true) return false;
    this.#details.set(id, entry);
    return true;
  }

  /** Entries whose call never came. */
  leftDetails(): readonly JsonObject[] {
    const left = [...this.#details.values()];
    this.#details.clear();
    return left;
  }

  fragments(list: readonly JsonValue[], events: GatewayEvent[]): void {
    for (const fragment of list) if (isObject(fragment)) this.#fragment(fragment, events);
  }

  /** Reads the deprecated single `function_call`. */
  legacy(call: JsonObject, events: GatewayEvent[]): void {
    this.#fragment({ index: 0, function: call }, events);
  }

  /** Closes every call. One whose name never came still begins, so that nothing is lost. */
  close(events: GatewayEvent[]): void {
    const ending = this.#unended;
    this.#unended = [];
    for (const call of ending) {
      if (!call.started) this.#start(call, {}, events);
      call.ended = true;
      const empty = call.spoke || call.custom ? {} : { $empty: true };
      events.push({ type: 'tool-end', block: call.block, choice: this.#choice, ...withExtra(empty) });
    }
  }

  #fragment(fragment: JsonObject, events: GatewayEvent[]): void {
    const custom = isObject(fragment.custom) || fragment.type === 'custom';
    const holder = custom ? fragment.custom : fragment.function;
    const inner = isObject(holder) ? holder : {};
    const id = typeof fragment.id === 'string' && fragment.id !== '' ? fragment.id : undefined;
    const name = typeof inner.name === 'string' ? inner.name : '';
    const index = typeof fragment.index === 'number' ? fragment.index : undefined;
    let call = this.#find(index, id, name);
    call ??= this.#open(index, id, custom);
    if (call.ended) throw unusableResponse('continued a tool call that had ended');
    call.proof ??= extraContentSignature(fragment);
    const input = textOf(custom ? inner.input : inner.arguments);
    const left = leftovers()
      .take(fragment, call.started ? laterFields : callFields, 'call.')
      .take(inner, innerFields, 'function.');
    if (call.started) {
      this.#emitInput(call, input, left, events);
      return;
    }
    call.name += name;
    if (call.name === '') {
      call.held += input;
      return;
    }
    this.#start(call, left.extra(), events);
    this.#emitInput(call, call.held + input, undefined, events);
    call.held = '';
  }

  #find(index: number | undefined, id: string | undefined, name: string): OpenCall | undefined {
    const last = this.#last;
    if (index === undefined) {
      if (id !== undefined) return this.#byId.get(id);
      return name === '' || last?.started === false ? last : undefined;
    }
    const call = this.#byIndex.get(index);
    if (call === undefined) return undefined;
    if (id === undefined || call.id === undefined || call.id === id) {
      // A second whole call without an id, under the same number.
      return id === undefined && call.id === undefined && name !== '' && call.started && call.spoke
        ? undefined
        : call;
    }
    return name === '' ? call : undefined;
  }

  #open(index: number | undefined, id: string | undefined, custom: boolean): OpenCall {
    const block = this.#nextBlock();
    const call: OpenCall = {
      block,
      id,
      custom,
      name: '',
      started: false,
      held: '',
      spoke: false,
      ended: false,
      proof: undefined,
    };
    this.#last = call;
    this.#unended.push(call);
    if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, call);
    this.#byIndex.set(index ?? this.#count, call);
    this.#count += 1;
    return call;
  }

  #start(call: OpenCall, left: { readonly extra?: Extra }, events: GatewayEvent[]): void {
    const { id, block, name } = call;
    call.started = true;
    const entry = id === undefined ? undefined : this.#details.get(id);
    if (id !== undefined) this.#details.delete(id);
    const proof = call.proof ?? (entry && readDetail(entry).proof);
    events.push({
      type: 'tool-start',
      block,
      choice: this.#choice,
      id: id === undefined ? `call_${randomUUID().replaceAll('-', '').slice(0, 24)}` : spellToolId(id),
      name,
      ...(call.custom ? { custom: true } : {}),
      ...defined({ proof }),
      ...withExtra({ ...left.extra?.[formatName], ...(entry === undefined ? {} : { $details: [entry] }) }),
    });
  }

  #emitInput(call: OpenCall, input: string, left: Leftovers | undefined, events: GatewayEvent[]): void {
    const extra = left?.extra() ?? {};
    if (input === '' && extra.extra === undefined) return;
    if (input !== '') call.spoke = true;
    events.push({ type: 'tool-delta', block: call.block, choice: this.#choice, input, ...extra });
  }
}

/** Arguments as text, also from providers that send them as an object. */
function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  if (!given(value)) return '';
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw unusableResponse('sent tool arguments that cannot be read', cause);
  }
}
