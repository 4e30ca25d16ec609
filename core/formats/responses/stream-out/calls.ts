import { parseObject, type JsonObject } from '../../../model/json.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { sayAdded, sayDone, type ItemStatus, type OpenItem, type Place } from './frames.ts';
import { actionField, unwrapInput, writeAction } from '../tools/calls.ts';
import type { ToolSpelling } from '../tools/spelling.ts';

/** A call of the client's tools, as its encoder needs to know it. */
interface CallStart {
  readonly callId: string;
  readonly spelling: ToolSpelling;
  /** The input is free text. */
  readonly custom: boolean;
}

/** A call whose arguments are told while they are written. */
export class CallItem implements OpenItem {
  readonly type: string;
  readonly #place: Place;
  readonly #call: CallStart;
  readonly #custom: boolean;
  /** The free text of a custom tool that comes as an object: it can be read only as a whole. */
  readonly #wrapped: boolean;
  #input = '';
  #ended = false;

  constructor(place: Place, call: CallStart) {
    this.#place = place;
    this.#call = call;
    this.type = call.spelling.call;
    this.#custom = call.spelling.call === 'custom_tool_call';
    this.#wrapped = this.#custom && !call.custom;
    sayAdded(place, this.#item(place.added, '', 'in_progress'));
  }

  get id(): string {
    return this.#place.id;
  }
  get index(): number {
    return this.#place.index;
  }

  delta(input: string, frame: JsonObject | undefined): void {
    if (this.#ended) return;
    this.#input += input;
    if (!this.#wrapped) this.#say('delta', { delta: input, ...frame });
  }

  /** No more input comes. `empty`: a call that says nothing has no text, not even an empty object's. */
  end(empty = false): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#wrapped) {
      this.#input = unwrapInput(this.#input);
      if (this.#input !== '') this.#say('delta', { delta: this.#input });
    } else if (this.#input === '' && !this.#custom && !empty) {
      this.#input = '{}';
      this.#say('delta', { delta: this.#input });
    }
    const input = this.#input;
    this.#say('done', this.#custom ? { input } : { name: this.#call.spelling.name, arguments: input });
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.end(true);
    return sayDone(this.#place, this.#item(done, this.#input, status));
  }

  #item(as: JsonObject | undefined, input: string, status: string): JsonObject {
    const { callId, spelling } = this.#call;
    const item: MutableObject = {
      ...(as ?? { status }),
      type: spelling.call,
      id: this.id,
      call_id: callId,
      name: spelling.name,
    };
    if (spelling.namespace === undefined) delete item.namespace;
    else item.namespace = spelling.namespace;
    item[this.#custom ? 'input' : 'arguments'] = input;
    return item;
  }

  #say(what: 'delta' | 'done', fields: JsonObject): void {
    const { writer, id, index } = this.#place;
    const family = this.#custom ? 'custom_tool_call_input' : 'function_call_arguments';
    writer.say(`response.${family}.${what}`, { item_id: id, output_index: index, ...fields });
  }
}

/** A call of a client-run built-in tool: its action is an object, told whole. */
export class ActionItem implements OpenItem {
  readonly type: string;
  readonly #place: Place;
  readonly #call: CallStart;
  #input = '';
  #said = false;

  constructor(place: Place, call: CallStart) {
    this.#place = place;
    this.#call = call;
    this.type = call.spelling.call;
    if (place.added === undefined) return;
    this.#said = true;
    sayAdded(place, { ...place.added, id: this.id, call_id: call.callId });
  }

  get id(): string {
    return this.#place.id;
  }
  get index(): number {
    return this.#place.index;
  }

  delta(input: string): void {
    this.#input += input;
  }

  end(): void {}

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const { callId, spelling } = this.#call;
    const field = actionField(spelling.call) ?? 'action';
    const action = done === undefined ? writeAction(spelling.call, this.#input) : parseObject(this.#input);
    if (action === undefined && !this.#said) return this.#unreadable(status);
    const item = {
      ...(done ?? this.#place.added),
      type: spelling.call,
      id: this.id,
      call_id: callId,
      ...(action === undefined ? {} : { [field]: action }),
      ...(done === undefined ? { status } : {}),
    };
    if (!this.#said) sayAdded(this.#place, { ...item, status: 'in_progress' });
    return sayDone(this.#place, item);
  }

  /** What cannot be read as an action is a plain call: the client says so to the model, and runs nothing. */
  #unreadable(status: ItemStatus): JsonObject {
    const spelling = { call: 'function_call', name: this.#call.spelling.name };
    const call = new CallItem(this.#place, { ...this.#call, spelling });
    call.delta(this.#input, undefined);
    return call.close(status, undefined);
  }
}
