import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

interface Answer {
  finished: boolean;
  readonly calls: Map<number, string>;
}

/** Returns the problems that clients would have with a stream of this format; empty if there are none. */
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
    const report = (problem: string): void => void this.#problems.push(`frame ${index}: ${problem}`);
    if (frame.event !== undefined) report('has an event name');
    if (this.#over !== undefined) report(`comes after ${this.#over}`);
    if ('text' in frame) {
      if (frame.text !== '[DONE]') report(`text ${frame.text}`);
      this.#over = 'done';
      return;
    }
    const chunk = frame.json;
    if (chunk.error !== undefined) {
      this.#over = 'error';
      this.#error(chunk, report);
      return;
    }
    this.#chunk(chunk, report);
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

  #error(chunk: JsonObject, report: (problem: string) => void): void {
    const { error } = chunk;
    if (!isObject(error)) return report('error is no object');
    if (typeof error.message !== 'string' || typeof error.type !== 'string')
      report('error has no message or type');
    if (error.code !== null && typeof error.code !== 'string')
      report('error.code is neither a string nor null');
    if (error.param !== null && typeof error.param !== 'string')
      report('error.param is neither a string nor null');
  }

  #chunk(chunk: JsonObject, report: (problem: string) => void): void {
    if (chunk.object !== 'chat.completion.chunk') report(`object ${String(chunk.object)}`);
    if (typeof chunk.id !== 'string' || !chunk.id.startsWith('chatcmpl-')) report(`id ${String(chunk.id)}`);
    if (typeof chunk.created !== 'number') report('created is no number');
    if (typeof chunk.model !== 'string') report('model is no string');
    const envelope = JSON.stringify([chunk.id, chunk.created, chunk.model]);
    this.#envelope ??= envelope;
    if (envelope !== this.#envelope) report('id, created or model changed');
    if (!Array.isArray(chunk.choices)) return report('choices is no array');
    if (this.#usage) report('comes after the usage chunk');
    if (isObject(chunk.usage)) {
      this.#usage = true;
      if (chunk.choices.length > 0) report('usage beside choices');
      if ([...this.#answers.values()].some((answer) => !answer.finished)) report('usage before the finish');
    }
    for (const choice of chunk.choices as readonly JsonValue[]) {
      if (isObject(choice)) this.#choice(choice, report);
      else report('a choice is no object');
    }
  }

  #choice(choice: JsonObject, report: (problem: string) => void): void {
    const { index, delta, finish_reason: finish } = choice;
    if (typeof index !== 'number') return report('choice without index');
    if (!isObject(delta)) return report('choice without delta');
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      if (delta.role !== 'assistant') report(`choice ${index} does not begin with the role`);
      answer = { finished: false, calls: new Map() };
      this.#answers.set(index, answer);
    }
    if (answer.finished) report(`choice ${index} goes on after its finish`);
    this.#delta(delta, answer, report);
    if (finish !== null && typeof finish !== 'string') report('finish_reason is neither a string nor null');
    if (typeof finish !== 'string') return;
    answer.finished = true;
    const official = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'];
    if (!official.includes(finish)) report(`finish_reason ${finish}`);
    if (finish === 'tool_calls' && answer.calls.size === 0) report('finish tool_calls without a call');
  }

  #delta(delta: JsonObject, answer: Answer, report: (problem: string) => void): void {
    for (const field of ['content', 'refusal', 'reasoning_content']) {
      const value = delta[field];
      if (value !== undefined && value !== null && typeof value !== 'string') report(`${field} is no string`);
    }
    if (delta.tool_calls === undefined) return;
    if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0)
      return report('tool_calls is no list with calls');
    for (const call of delta.tool_calls as readonly JsonValue[]) {
      if (isObject(call)) this.#call(call, answer, report);
      else report('a tool call is no object');
    }
  }

  #call(call: JsonObject, answer: Answer, report: (problem: string) => void): void {
    const { index } = call;
    if (typeof index !== 'number') return report('tool call without index');
    const inner = isObject(call.custom) ? call.custom : call.function;
    if (!isObject(inner)) return report('tool call without function');
    const input = isObject(call.custom) ? inner.input : inner.arguments;
    if (typeof input !== 'string') report('tool call without arguments');
    if (answer.calls.has(index)) {
      if (call.id !== undefined || inner.name !== undefined) report(`tool call ${index} starts twice`);
      return;
    }
    if (index !== answer.calls.size) report(`tool call ${index} out of order`);
    if (typeof call.id !== 'string' || call.id === '') report('tool call without id');
    else if (this.#ids.has(call.id)) report(`tool call id ${call.id} twice`);
    else this.#ids.add(call.id);
    if (typeof inner.name !== 'string') report('tool call without name');
    if (call.type !== 'function' && call.type !== 'custom') report('tool call without type');
    answer.calls.set(index, String(call.id));
  }
}
