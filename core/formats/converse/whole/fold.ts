import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { argumentsObject } from '../../_shared/call-arguments.ts';
import type { FrameFold, WireFrame } from '../../../sdk/format.ts';
import { listOf, textOf } from '../../_shared/fields.ts';

/** Puts the frames of one reply together, as a client's SDK would. */
export class ConverseFold implements FrameFold {
  readonly #blocks: MutableObject[] = [];
  readonly #inputs = new Map<MutableObject, string>();
  #role: JsonValue = 'assistant';
  #rest: JsonObject = {};

  frame(frame: WireFrame): void {
    if (!('json' in frame)) return;
    const { event, json } = frame;
    switch (event) {
      case 'messageStart':
        this.#role = json.role ?? 'assistant';
        return;
      case 'contentBlockStart':
        this.#start(json);
        return;
      case 'contentBlockDelta':
        if (isObject(json.delta)) this.#delta(indexOf(json), json.delta);
        return;
      case 'messageStop':
      case 'metadata':
        this.#rest = { ...this.#rest, ...json };
        return;
      default:
    }
  }

  end(): JsonObject {
    for (const [call, input] of this.#inputs) call.input = argumentsObject(input);
    return { output: { message: { role: this.#role, content: this.#blocks } }, ...this.#rest };
  }

  #start(json: JsonObject): void {
    const start = isObject(json.start) ? json.start : {};
    const block: MutableObject = { ...start };
    this.#blocks[indexOf(json)] = block;
    if (!isObject(start.toolUse)) return;
    const call: MutableObject = { ...start.toolUse, input: {} };
    block.toolUse = call;
    this.#inputs.set(call, '');
  }

  #delta(index: number, delta: JsonObject): void {
    const block = (this.#blocks[index] ??= {});
    if (typeof delta.text === 'string') addText(block, delta.text);
    else if (isObject(delta.citation)) cite(block, delta.citation);
    else if (isObject(delta.reasoningContent)) think(block, delta.reasoningContent);
    else if (isObject(delta.toolUse) && isObject(block.toolUse)) {
      const before = this.#inputs.get(block.toolUse) ?? '';
      this.#inputs.set(block.toolUse, before + textOf(delta.toolUse.input));
    } else if (isObject(delta.image)) block.image = { ...asObject(block.image), ...delta.image };
    else Object.assign(block, delta);
  }
}

function indexOf({ contentBlockIndex: index }: JsonObject): number {
  return typeof index === 'number' ? index : 0;
}

function asObject(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Text that quotes sources is a block of another kind. */
function addText(block: MutableObject, text: string): void {
  if (block.citationsContent === undefined) {
    block.text = textOf(block.text) + text;
    return;
  }
  const { content } = asObject(block.citationsContent);
  const [first] = listOf(content);
  const before = isObject(first) ? textOf(first.text) : '';
  block.citationsContent = { ...asObject(block.citationsContent), content: [{ text: before + text }] };
}

function cite(block: MutableObject, citation: JsonObject): void {
  const { citations, content } = asObject(block.citationsContent);
  const list: JsonValue[] = Array.isArray(citations) ? citations : [];
  list.push(citation);
  const said = typeof block.text === 'string' ? [{ text: block.text }] : (content ?? []);
  delete block.text;
  block.citationsContent = { content: said, citations: list };
}

function think(block: MutableObject, { text, signature, redactedContent }: JsonObject): void {
  if (redactedContent !== undefined) {
    block.reasoningContent = { redactedContent };
    return;
  }
  const { reasoningText } = asObject(block.reasoningContent);
  const before = asObject(reasoningText);
  block.reasoningContent = {
    reasoningText: {
      ...before,
      text: textOf(before.text) + textOf(text),
      ...(signature === undefined ? {} : { signature }),
    },
  };
}
