/** Whole Messages replies: splits a reply into stream events, and merges stream events into a reply. */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { argumentsObject } from '../../json/arguments.ts';
import { repliedArguments } from '../_shared/replied-arguments.ts';
import type { FrameFold, WireFrame } from '../../sdk/format.ts';
import { mergeUsage } from './usage.ts';
import { listOf, textOf } from '../_shared/fields.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Puts the frames of one reply together, as a client's SDK does. */
export class MessagesFold implements FrameFold {
  #message: MutableObject = {};
  readonly #blocks: MutableObject[] = [];
  readonly #inputs = new Map<MutableObject, string>();
  /** Citations of the last block that has any. A copy, because the list in its first frame must not be changed. */
  #cited: { readonly block: MutableObject; readonly citations: JsonValue[] } | undefined;

  frame(frame: WireFrame): void {
    if (!('json' in frame)) return;
    const { json } = frame;
    switch (json.type) {
      case 'message_start':
        this.#message = isObject(json.message) ? { ...json.message } : {};
        return;
      case 'content_block_start':
        if (isObject(json.content_block)) this.#blocks.push({ ...json.content_block });
        return;
      case 'content_block_delta':
        if (isObject(json.delta)) this.#delta(json.delta);
        return;
      case 'message_delta':
        this.#ending(json);
        return;
      default:
    }
  }

  end(): JsonObject {
    for (const [block, input] of this.#inputs) block.input = argumentsObject(input);
    return { ...this.#message, content: this.#blocks };
  }

  #delta(delta: JsonObject): void {
    const block = this.#blocks.at(-1);
    if (block === undefined) return;
    const { type, ...fields } = delta;
    if (type === 'input_json_delta') {
      this.#inputs.set(block, (this.#inputs.get(block) ?? '') + textOf(fields.partial_json));
    } else if (type === 'citations_delta') {
      this.#cite(block, fields.citation);
    } else {
      const known = fieldOf[String(type)];
      for (const key of known === undefined ? Object.keys(fields) : [known]) append(block, key, fields[key]);
    }
  }

  #cite(block: MutableObject, citation: JsonValue | undefined): void {
    if (this.#cited?.block !== block) {
      const citations = Array.isArray(block.citations) ? [...(block.citations as readonly JsonValue[])] : [];
      this.#cited = { block, citations };
      block.citations = citations;
    }
    if (citation !== undefined) this.#cited.citations.push(citation);
  }

  #ending(json: JsonObject): void {
    const { type: _, delta, usage, ...rest } = json;
    const before = isObject(this.#message.usage) ? this.#message.usage : undefined;
    this.#message = { ...this.#message, ...(isObject(delta) ? delta : {}), ...rest };
    if (isObject(usage)) this.#message.usage = mergeUsage(before, usage);
  }
}

/** The field that a delta of this type adds to; other types add all of theirs. */
const fieldOf = lookupTable<string | undefined>({
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
});

function append(block: MutableObject, key: string, value: JsonValue | undefined): void {
  const before = block[key];
  block[key] = typeof before === 'string' && typeof value === 'string' ? before + value : value;
}

/** Splits a whole reply into stream frames. */
export function unfold(reply: JsonObject): JsonObject[] {
  const { content, stop_reason, stop_sequence, stop_details, ...message } = reply;
  const blocks = listOf(content);
  return [
    {
      type: 'message_start',
      message: { ...message, ...(stop_details === null ? { stop_details } : {}), content: [] },
    },
    ...blocks.flatMap((block, index) => (isObject(block) ? framesOf(block, index) : [])),
    {
      type: 'message_delta',
      delta: {
        stop_reason,
        stop_sequence,
        ...(stop_details === undefined || stop_details === null ? {} : { stop_details }),
      },
    },
    { type: 'message_stop' },
  ];
}

function framesOf(block: JsonObject, index: number): JsonObject[] {
  const [start = block, ...deltas] = pieces(block);
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** Splits a block into its start and its deltas. A block of a kind without deltas is its start. */
function pieces(block: JsonObject): readonly JsonObject[] {
  const { text, thinking, signature, citations } = block;
  switch (block.type) {
    case 'text':
      return [
        { ...block, text: '', ...(Array.isArray(citations) ? { citations: [] } : {}) },
        ...(text === '' ? [] : [{ type: 'text_delta', text }]),
        ...listOf(citations).map((citation) => ({ type: 'citations_delta', citation })),
      ];
    case 'thinking':
      return [
        { ...block, thinking: '', signature: '' },
        ...(thinking === '' ? [] : [{ type: 'thinking_delta', thinking }]),
        ...(signature === '' ? [] : [{ type: 'signature_delta', signature }]),
      ];
    case 'tool_use':
      return [
        { ...block, input: {} },
        { type: 'input_json_delta', partial_json: repliedArguments(block.input) },
      ];
    default:
      return [block];
  }
}
