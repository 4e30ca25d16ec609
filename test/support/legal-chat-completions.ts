import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

interface Answer {
  finished: boolean;
  readonly calls: Map<number, string>;
}

/** What is illegal in a chat completion stream as its clients read it; empty when nothing is. */
export function checkLegal(frames: WireFrame[]): string[] {
  const checker = new Checker();
  frames.forEach((frame, index) => checker.frame(frame, index));
  return checker.end();
}

class Checker {
  readonly #problems: string[] = [];
  readonly #answers = new Map<number, Answer>();
  readonly #ids = new Set<string>();
  #envelope: string | undefined;
  #over: 'done' | 'error' | undefined;
  #usage = false;

  frame(frame: WireFrame, index: number): void {
    const say = (problem: string): void => void this.#problems.push(`frame ${index}: ${problem}`);
    if (frame.event !== undefined) say('has an event name');
    if (this.#over !== undefined) say(`comes after ${this.#over}`);
    if ('text' in frame) {
      if (frame.text !== '[DONE]') say(`text ${frame.text}`);
      this.#over = 'done';
      return;
    }
    const chunk = frame.json;
    if (chunk.error !== undefined) {
      this.#over = 'error';
      this.#error(chunk, say);
      return;
    }
    this.#chunk(chunk, say);
  }

  end(): string[] {
    if (this.#over === undefined) this.#problems.push('no [DONE] and no error');
    if (this.#over !== 'done') return this.#problems;
    if (this.#answers.size === 0) this.#problems.push('no answer');
    for (const [index, answer] of this.#answers) {
      if (!answer.finished) this.#problems.push(`choice ${index} has no finish_reason`);
    }
    return this.#problems;
  }

  #error(chunk: JsonObject, say: (problem: string) => void): void {
    const { error } = chunk;
    if (!isObject(error)) return say('error is no object');
    if (typeof error.message !== 'string' || typeof error.type !== 'string')
      say('error has no message or type');
    if (error.code !== null && typeof error.code !== 'string') say('error.code is neither a string nor null');
    if (error.param !== null && typeof error.param !== 'string')
      say('error.param is neither a string nor null');
  }

  #chunk(chunk: JsonObject, say: (problem: string) => void): void {
    if (chunk.object !== 'chat.completion.chunk') say(`object ${String(chunk.object)}`);
    if (typeof chunk.id !== 'string' || !chunk.id.startsWith('chatcmpl-')) say(`id ${String(chunk.id)}`);
    if (typeof chunk.created !== 'number') say('created is no number');
    if (typeof chunk.model !== 'string') say('model is no string');
    const envelope = JSON.stringify([chunk.id, chunk.created, chunk.model]);
    this.#envelope ??= envelope;
    if (envelope !== this.#envelope) say('id, created or model changed');
    if (!Array.isArray(chunk.choices)) return say('choices is no array');
    if (this.#usage) say('comes after the usage chunk');
    if (isObject(chunk.usage)) {
      this.#usage = true;
      if (chunk.choices.length > 0) say('usage beside choices');
      if ([...this.#answers.values()].some((answer) => !answer.finished)) say('usage before the finish');
    }
    for (const choice of chunk.choices as readonly JsonValue[]) {
      if (isObject(choice)) this.#choice(choice, say);
      else say('a choice is no object');
    }
  }

  #choice(choice: JsonObject, say: (problem: string) => void): void {
    const { index, delta, finish_reason: finish } = choice;
    if (typeof index !== 'number') return say('choice without index');
    if (!isObject(delta)) return say('choice without delta');
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      if (delta.role !== 'assistant') say(`choice ${index} does not begin with the role`);
      answer = { finished: false, calls: new Map() };
      this.#answers.set(index, answer);
    }
    if (answer.finished) say(`choice ${index} goes on after its finish`);
    this.#delta(delta, answer, say);
    if (finish !== null && typeof finish !== 'string') say('finish_reason is neither a string nor null');
    if (typeof finish !== 'string') return;
    answer.finished = true;
    const official = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'];
    if (!official.includes(finish)) say(`finish_reason ${finish}`);
    if (finish === 'tool_calls' && answer.calls.size === 0) say('finish tool_calls without a call');
  }

  #delta(delta: JsonObject, answer: Answer, say: (problem: string) => void): void {
    for (const field of ['content', 'refusal', 'reasoning_content']) {
      const value = delta[field];
      if (value !== undefined && value !== null && typeof value !== 'string') say(`${field} is no string`);
    }
    if (delta.tool_calls === undefined) return;
    if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0)
      return say('tool_calls is no list with calls');
    for (const call of delta.tool_calls as readonly JsonValue[]) {
      if (isObject(call)) this.#call(call, answer, say);
      else say('a tool call is no object');
    }
  }

  #call(call: JsonObject, answer: Answer, say: (problem: string) => void): void {
    const { index } = call;
    if (typeof index !== 'number') return say('tool call without index');
    const inner = isObject(call.custom) ? call.custom : call.function;
    if (!isObject(inner)) return say('tool call without function');
    const input = isObject(call.custom) ? inner.input : inner.arguments;
    if (typeof input !== 'string') say('tool call without arguments');
    if (answer.calls.has(index)) {
      if (call.id !== undefined || inner.name !== undefined) say(`tool call ${index} starts twice`);
      return;
    }
    if (index !== answer.calls.size) say(`tool call ${index} out of order`);
    if (typeof call.id !== 'string' || call.id === '') say('tool call without id');
    else if (this.#ids.has(call.id)) say(`tool call id ${call.id} twice`);
    else this.#ids.add(call.id);
    if (typeof inner.name !== 'string') say('tool call without name');
    if (call.type !== 'function' && call.type !== 'custom') say('tool call without type');
    answer.calls.set(index, String(call.id));
  }
}
