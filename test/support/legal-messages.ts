import type { WireFrame } from '../../core/sdk/format.ts';
import { parseObject } from '../../core/json/parse.ts';
import { isObject, type JsonObject } from '../../core/model/json.ts';

interface Block {
  readonly index: number;
  readonly type: string;
  pieces: number;
  input: string;
  signed: boolean;
}

/** Returns the problems that clients would have with a stream of this format; empty if there are none. */
export function checkLegal(frames: WireFrame[]): string[] {
  const checker = new Checker();
  frames.forEach((frame, index) => checker.frame(frame, index));
  return checker.end();
}

const deltasOf: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  redacted_thinking: [],
};
const knownDeltas: ReadonlySet<string> = new Set(Object.values(deltasOf).flat());

class Checker {
  readonly #problems: string[] = [];
  readonly #toolIds = new Set<string>();
  #report: (problem: string) => void = () => {};
  #started = false;
  #open: Block | undefined;
  #next = 0;
  #delta = false;
  #over: 'message_stop' | 'error' | undefined;

  frame(frame: WireFrame, at: number): void {
    this.#report = (problem) => void this.#problems.push(`frame ${at}: ${problem}`);
    if ('text' in frame) return this.#report(`text ${frame.text}`);
    const { json } = frame;
    if (frame.event !== json.type) this.#report(`event ${frame.event} holds ${String(json.type)}`);
    if (this.#over !== undefined) this.#report(`comes after ${this.#over}`);
    if (json.type === 'ping') return;
    if (json.type === 'error') return this.#error(json);
    if (json.type !== 'message_start' && !this.#started)
      this.#report(`${String(json.type)} before message_start`);
    if (this.#delta && json.type !== 'message_stop') this.#report(`${String(json.type)} after message_delta`);
    this.#known(json);
  }

  end(): string[] {
    if (this.#over === undefined) this.#problems.push('no message_stop and no error');
    return this.#problems;
  }

  #known(json: JsonObject): void {
    switch (json.type) {
      case 'message_start':
        return this.#start(json);
      case 'content_block_start':
        return this.#blockStart(json);
      case 'content_block_delta':
        return this.#blockDelta(json);
      case 'content_block_stop':
        return this.#blockStop(json);
      case 'message_delta':
        return this.#messageDelta(json);
      case 'message_stop':
        if (!this.#delta) this.#report('message_stop before message_delta');
        this.#over = 'message_stop';
        return;
      default:
    }
  }

  #error(json: JsonObject): void {
    this.#over = 'error';
    const { error } = json;
    if (!isObject(error) || typeof error.type !== 'string' || typeof error.message !== 'string') {
      this.#report('an error without type or message');
    }
  }

  #start(json: JsonObject): void {
    if (this.#started) this.#report('a second message_start');
    this.#started = true;
    const { message } = json;
    if (!isObject(message)) return this.#report('message_start without a message');
    if (typeof message.id !== 'string' || !/^msg_./.test(message.id))
      this.#report(`id ${String(message.id)}`);
    if (message.type !== 'message' || message.role !== 'assistant')
      this.#report('type or role of the message');
    if (typeof message.model !== 'string') this.#report('no model');
    if (!Array.isArray(message.content) || message.content.length > 0) this.#report('content is not empty');
    if (message.stop_reason !== null || message.stop_sequence !== null)
      this.#report('stop_reason is not null');
    this.#usage(message.usage, ['input_tokens', 'output_tokens']);
  }

  #blockStart(json: JsonObject): void {
    if (this.#open !== undefined) this.#report(`a block starts inside block ${this.#open.index}`);
    if (json.index !== this.#next) this.#report(`index ${String(json.index)} instead of ${this.#next}`);
    this.#next += 1;
    const content = json.content_block;
    if (!isObject(content) || typeof content.type !== 'string') return this.#report('a block without a type');
    if (content.type === 'text' && content.text !== '') this.#report('a text block does not start empty');
    if (content.type === 'thinking' && (content.thinking !== '' || content.signature !== '')) {
      this.#report('a thinking block does not start empty');
    }
    if (content.type === 'tool_use') this.#tool(content);
    this.#open = { index: this.#next - 1, type: content.type, pieces: 0, input: '', signed: false };
  }

  #tool({ id, name, input }: JsonObject): void {
    if (typeof id !== 'string' || !/^[A-Za-z0-9_-]+$/.test(id)) this.#report(`tool id ${String(id)}`);
    else if (this.#toolIds.has(id)) this.#report(`tool id ${id} twice`);
    else this.#toolIds.add(id);
    if (typeof name !== 'string') this.#report('a tool without a name');
    if (!isObject(input) || Object.keys(input).length > 0)
      this.#report('a tool does not start with an empty input');
  }

  #blockDelta(json: JsonObject): void {
    const open = this.#open;
    if (open === undefined || open.index !== json.index)
      return this.#report('a piece of a block that is not open');
    const { delta } = json;
    if (!isObject(delta) || typeof delta.type !== 'string') return this.#report('a piece without a type');
    const allowed = deltasOf[open.type];
    if (allowed !== undefined && knownDeltas.has(delta.type) && !allowed.includes(delta.type)) {
      this.#report(`${delta.type} in ${open.type}`);
    }
    if (open.signed) this.#report('a piece after the signature');
    if (delta.type === 'text_delta' && typeof delta.text !== 'string') this.#report('text is no string');
    if (delta.type === 'text_delta' && delta.text === '' && open.pieces === 0)
      this.#report('a text block starts with nothing');
    if (delta.type === 'signature_delta') open.signed = true;
    if (typeof delta.partial_json === 'string') open.input += delta.partial_json;
    open.pieces += 1;
  }

  #blockStop(json: JsonObject): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined || open.index !== json.index)
      return this.#report('the end of a block that is not open');
    if ((open.type === 'text' || open.type === 'thinking') && open.pieces === 0)
      this.#report(`an empty ${open.type} block`);
  }

  #messageDelta(json: JsonObject): void {
    if (this.#open !== undefined) this.#report(`message_delta inside block ${this.#open.index}`);
    this.#delta = true;
    if (!isObject(json.delta) || typeof json.delta.stop_reason !== 'string') this.#report('no stop_reason');
    else if (json.delta.stop_sequence === undefined) this.#report('no stop_sequence');
    this.#usage(json.usage, ['output_tokens']);
  }

  #usage(usage: unknown, required: readonly string[]): void {
    if (!isObject(usage)) return this.#report('no usage');
    for (const name of required)
      if (typeof usage[name] !== 'number') this.#report(`usage.${name} is no number`);
  }
}

/** True when every tool input of the frames is a JSON object (or nothing): not a law of the stream, but of what goes into it. */
export function inputsParse(frames: readonly WireFrame[]): boolean {
  const inputs = new Map<unknown, string>();
  for (const frame of frames) {
    if (!('json' in frame) || !isObject(frame.json.delta)) continue;
    const piece = frame.json.delta.partial_json;
    if (typeof piece === 'string') inputs.set(frame.json.index, (inputs.get(frame.json.index) ?? '') + piece);
  }
  return [...inputs.values()].every((text) => text === '' || parseObject(text) !== undefined);
}
