/** Encodes tool calls as output items of a Responses stream. */
import { parseObject } from '../../../json/parse.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { OpenItem, type ItemStatus, type ItemStart } from './frames.ts';
import { actionField, unwrapInput, writeAction } from '../tools/calls.ts';
import type { ToolSpelling } from '../tools/spelling.ts';

/** Id, spelling and kind of a call of the client's tools. */
interface CallStart {
  readonly callId: string;
  readonly spelling: ToolSpelling;
  /** True when the input is free text. */
  readonly custom: boolean;
}

/** Encodes a call whose arguments are streamed. */
export class CallItem extends OpenItem {
  readonly #call: CallStart;
  readonly #custom: boolean;
  /** True when the free text of a custom tool comes wrapped in an object, which can be read only when it is complete. */
  readonly #wrapped: boolean;
  #input = '';
  #ended = false;

  constructor(start: ItemStart, call: CallStart) {
    super(call.spelling.call, start);
    this.#call = call;
    this.#custom = call.spelling.call === 'custom_tool_call';
    this.#wrapped = this.#custom && !call.custom;
    this.emitAdded(this.#item(start.added, '', 'in_progress'));
  }

  delta(input: string, frame: JsonObject | undefined): void {
    if (this.#ended) return;
    this.#input += input;
    if (!this.#wrapped) this.#emitInput('delta', { delta: input, ...frame });
  }

  /** Ends the input. `empty`: the arguments of a call without input are an empty string, not an empty object. */
  end(empty = false): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#wrapped) {
      this.#input = unwrapInput(this.#input);
      if (this.#input !== '') this.#emitInput('delta', { delta: this.#input });
    } else if (this.#input === '' && !this.#custom && !empty) {
      this.#input = '{}';
      this.#emitInput('delta', { delta: this.#input });
    }
    const input = this.#input;
    this.#emitInput('done', this.#custom ? { input } : { name: this.#call.spelling.name, arguments: input });
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.end(true);
    return this.emitDone(this.#item(done, this.#input, status));
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

  #emitInput(what: 'delta' | 'done', fields: JsonObject): void {
    const family = this.#custom ? 'custom_tool_call_input' : 'function_call_arguments';
    this.emit(`response.${family}.${what}`, fields);
  }
}

/** Encodes a call of a built-in tool that the client runs: its action is an object, which is sent at the end. */
export class ActionItem extends OpenItem {
  readonly #start: ItemStart;
  readonly #call: CallStart;
  #input = '';
  #isAnnounced = false;

  constructor(start: ItemStart, call: CallStart) {
    super(call.spelling.call, start);
    this.#start = start;
    this.#call = call;
    if (start.added === undefined) return;
    this.#isAnnounced = true;
    this.emitAdded({ ...start.added, id: this.id, call_id: call.callId });
  }

  delta(input: string): void {
    this.#input += input;
  }

  end(): void {}

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    const { callId, spelling } = this.#call;
    const field = actionField(spelling.call) ?? 'action';
    const action = done === undefined ? writeAction(spelling.call, this.#input) : parseObject(this.#input);
    if (action === undefined && !this.#isAnnounced) return this.#unreadable(status);
    const item = {
      ...(done ?? this.added),
      type: spelling.call,
      id: this.id,
      call_id: callId,
      ...(action === undefined ? {} : { [field]: action }),
      ...(done === undefined ? { status } : {}),
    };
    if (!this.#isAnnounced) this.emitAdded({ ...item, status: 'in_progress' });
    return this.emitDone(item);
  }

  /** Encodes input that is no valid action as a function call, so that the client reports an error to the model and runs nothing. */
  #unreadable(status: ItemStatus): JsonObject {
    const spelling = { call: 'function_call', name: this.#call.spelling.name };
    const call = new CallItem(this.#start, { ...this.#call, spelling });
    call.delta(this.#input, undefined);
    return call.close(status, undefined);
  }
}
