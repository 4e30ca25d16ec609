/** Whole Converse replies: decodes a provider's reply by way of stream events, and merges the frames of a stream into one reply. */
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { argumentsObject } from '../../json/arguments.ts';
import { repliedArguments } from '../_shared/replied-arguments.ts';
import { defined, listOf, objectsOf, textOf } from '../_shared/fields.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';
import type { FrameFold, WireFrame } from '../../sdk/format.ts';
import { ConverseStreamDecoder } from './stream-in.ts';

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

/** Appends text, to `citationsContent` where the block already has citations. */
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
  const textParts = typeof block.text === 'string' ? [{ text: block.text }] : (content ?? []);
  delete block.text;
  block.citationsContent = { content: textParts, citations: list };
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

/** Returns a provider's whole reply as the events of a stream. Throws for an error body and for what is no reply at all. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const message = isObject(body.output) ? body.output.message : undefined;
  if (!isObject(message) || !Array.isArray(message.content))
    throw unusableResponse('sent JSON that is not a response');
  const decoder = new ConverseStreamDecoder();
  return [...unfold(body, message).flatMap(({ event, json }) => decoder.json(event, json)), ...decoder.end()];
}

/** Parsed frame of a stream. */
interface ParsedFrame {
  readonly event: string;
  readonly json: JsonObject;
}

/** Splits a whole reply, whose message is `message`, into stream frames. */
function unfold(body: JsonObject, { role, content }: JsonObject): readonly ParsedFrame[] {
  const { output: _, stopReason, additionalModelResponseFields, ...metadata } = body;
  return [
    { event: 'messageStart', json: { role } },
    ...listOf(content).flatMap((block, index) => (isObject(block) ? framesOf(block, index) : [])),
    { event: 'messageStop', json: defined({ stopReason, additionalModelResponseFields }) },
    ...(isObject(body.usage) ? [{ event: 'metadata', json: metadata }] : []),
  ];
}

function framesOf(block: JsonObject, contentBlockIndex: number): readonly ParsedFrame[] {
  return [
    ...pieces(block).map((piece) => ({
      event: piece.delta === undefined ? 'contentBlockStart' : 'contentBlockDelta',
      json: { contentBlockIndex, ...piece },
    })),
    { event: 'contentBlockStop', json: { contentBlockIndex } },
  ];
}

/** Splits a block into its start, where its kind has one, and its deltas. A block of a kind without deltas is its start. */
function pieces(block: JsonObject): readonly JsonObject[] {
  const { text, toolUse, reasoningContent, citationsContent, image } = block;
  if (typeof text === 'string') return [{ delta: { text } }];
  if (isObject(toolUse)) {
    const { input, ...call } = toolUse;
    return [{ start: { toolUse: call } }, { delta: { toolUse: { input: repliedArguments(input) } } }];
  }
  if (isObject(reasoningContent)) return thoughts(reasoningContent);
  if (isObject(citationsContent)) {
    const textParts = objectsOf(citationsContent.content).filter((part) => typeof part.text === 'string');
    const words = textParts.map((part) => ({ delta: { text: part.text } }));
    return [...words, ...listOf(citationsContent.citations).map((citation) => ({ delta: { citation } }))];
  }
  if (isObject(image)) {
    const { format, source } = image;
    return [{ start: { image: { format } } }, { delta: { image: { source } } }];
  }
  return [{ start: block }];
}

function thoughts({ reasoningText, redactedContent }: JsonObject): readonly JsonObject[] {
  if (redactedContent !== undefined) return [{ delta: { reasoningContent: { redactedContent } } }];
  const { text = '', signature } = isObject(reasoningText) ? reasoningText : {};
  const words = { delta: { reasoningContent: { text } } };
  return signature === undefined ? [words] : [words, { delta: { reasoningContent: { signature } } }];
}
