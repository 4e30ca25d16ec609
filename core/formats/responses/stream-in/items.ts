/** Decodes output items of a Responses stream: tool calls, images, reasoning, and items that pass unchanged. */
import type { GatewayEvent } from '../../../model/event.ts';
import type { Extra } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { proofIn } from '../../_shared/proof.ts';
import { defined, fieldsBeside, isText, objectsOf, textOf, setOf } from '../../_shared/fields.ts';
import { readCall } from '../tools/calls.ts';
import { formatName, withExtra, unknown } from '../wire.ts';

/** Returns the event for a frame that only this format has. */
export function opaqueFrame(value: JsonObject): GatewayEvent {
  return { type: 'opaque', format: formatName, value, choice: 0 };
}

/** Reads one item of the output, from its first event to its last. */
export abstract class ItemDecoder {
  /** Reads an event of the item between its first and its last one. */
  frame(frame: JsonObject, out: GatewayEvent[]): void {
    out.push(opaqueFrame(frame));
  }

  /** Ends the item: emits the parts of it that no earlier event carried. */
  abstract done(item: JsonObject, frame: JsonObject, out: GatewayEvent[]): void;
}

/** Decodes items whose events are no blocks, such as hosted tools and unknown items: passes their frames on. */
export class OpaqueDecoder extends ItemDecoder {
  done(_item: JsonObject, frame: JsonObject, out: GatewayEvent[]): void {
    this.frame(frame, out);
  }
}

/** A call of the client's tools. */
export class CallDecoder extends ItemDecoder {
  readonly #block: number;
  readonly #textual: boolean;
  #length = 0;

  constructor(block: number, item: JsonObject, out: GatewayEvent[]) {
    super();
    const call = readCall(item);
    this.#block = block;
    this.#textual = item.type === 'function_call' || item.type === 'custom_tool_call';
    out.push({
      type: 'tool-start',
      block,
      choice: 0,
      id: textOf(item.call_id),
      name: call?.name ?? '',
      ...(call?.custom === true ? { custom: true } : {}),
      ...withExtra({ $item: item, ...unknown(item, callFields) }),
    });
    if (this.#textual) this.#emitInput(call?.input ?? '', out);
  }

  override frame(frame: JsonObject, out: GatewayEvent[]): void {
    switch (frame.type) {
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#emitInput(textOf(frame.delta), out, frameExtra(frame));
      case 'response.function_call_arguments.done':
        return this.#rest(textOf(frame.arguments), out);
      case 'response.custom_tool_call_input.done':
        return this.#rest(textOf(frame.input), out);
      default:
        super.frame(frame, out);
    }
  }

  done(item: JsonObject, _frame: JsonObject, out: GatewayEvent[]): void {
    this.#rest(readCall(item)?.input ?? '', out);
    const empty = this.#length === 0 ? { $empty: true } : {};
    out.push({ type: 'tool-end', block: this.#block, choice: 0, ...withExtra({ $done: item, ...empty }) });
  }

  #emitInput(input: string, out: GatewayEvent[], extra: { readonly extra?: Extra } = {}): void {
    if (input === '' && extra.extra === undefined) return;
    this.#length += input.length;
    out.push({ type: 'tool-delta', block: this.#block, choice: 0, input, ...extra });
  }

  /** Emits the part of the input that was not sent in any delta. */
  #rest(whole: string, out: GatewayEvent[]): void {
    this.#emitInput(whole.slice(this.#length), out);
  }
}

const callFields = setOf(
  'type id call_id name namespace arguments input status action operation environment',
);

/** An image that the model made. */
export class ImageDecoder extends ItemDecoder {
  readonly #block: number;

  constructor(block: number, item: JsonObject, out: GatewayEvent[]) {
    super();
    this.#block = block;
    const format = textOf(item.output_format);
    const mimeType = format === '' ? {} : { mimeType: `image/${format}` };
    const $item = { ...item, ...(item.result === undefined ? {} : { result: null }) };
    out.push({ type: 'media-start', block, choice: 0, media: 'image', ...mimeType, ...withExtra({ $item }) });
  }

  done(item: JsonObject, _frame: JsonObject, out: GatewayEvent[]): void {
    const block = this.#block;
    const data = textOf(item.result);
    if (data !== '') out.push({ type: 'media-delta', block, choice: 0, data });
    const $done = fieldsBeside(item, resultField);
    out.push({ type: 'media-end', block, choice: 0, ...withExtra({ $done }) });
  }
}

const resultField = setOf('result');

type ReasoningField = 'summary' | 'content';

/** Decodes reasoning. A blank line separates the parts of a summary, for formats without parts. */
export class ReasoningDecoder extends ItemDecoder {
  readonly #block: number;
  readonly #counts: Record<ReasoningField, number> = { summary: 0, content: 0 };
  #part: { readonly field: ReasoningField; readonly as: JsonObject | undefined; length: number } | undefined;
  /** True until the start of the open part is emitted, with its first text. */
  #isStartPending = false;

  constructor(block: number, item: JsonObject, out: GatewayEvent[]) {
    super();
    this.#block = block;
    const $item = { ...item, summary: [] };
    const extra = withExtra({ $item, ...unknown(item, reasoningFields) });
    out.push({ type: 'reasoning-start', block, choice: 0, ...extra });
  }

  override frame(frame: JsonObject, out: GatewayEvent[]): void {
    switch (frame.type) {
      case 'response.reasoning_summary_part.added':
        return this.#begin('summary', frame.part, out);
      case 'response.content_part.added':
        return this.#begin('content', frame.part, out);
      case 'response.reasoning_summary_text.delta':
        return this.#delta('summary', frame, frame.summary_index, out);
      case 'response.reasoning_text.delta':
        return this.#delta('content', frame, frame.content_index, out);
      case 'response.reasoning_summary_text.done':
        return this.#rest('summary', textOf(frame.text), frame.summary_index, out);
      case 'response.reasoning_text.done':
        return this.#rest('content', textOf(frame.text), frame.content_index, out);
      case 'response.reasoning_summary_part.done':
      case 'response.content_part.done': {
        const field = frame.type === 'response.content_part.done' ? 'content' : 'summary';
        const index = field === 'content' ? frame.content_index : frame.summary_index;
        const part = isObject(frame.part) ? frame.part : {};
        this.#rest(field, textOf(part.text), index, out);
        return this.#end(out);
      }
      default:
        super.frame(frame, out);
    }
  }

  done(item: JsonObject, _frame: JsonObject, out: GatewayEvent[]): void {
    for (const field of ['summary', 'content'] as const) {
      const parts = objectsOf(item[field]);
      for (let index = Math.max(0, this.#counts[field] - 1); index < parts.length; index += 1) {
        const part = parts[index];
        if (index >= this.#counts[field]) this.#begin(field, part, out);
        this.#rest(field, textOf(part?.text), index, out);
      }
    }
    this.#end(out);
    const { encrypted_content: sealed } = item;
    const proof = isText(sealed) ? proofIn(formatName, 'encrypted', sealed) : undefined;
    const $done = proof === undefined ? item : fieldsBeside(item, proofField);
    const kept = { ...defined({ proof }), ...withExtra({ $done }) };
    out.push({ type: 'reasoning-end', block: this.#block, choice: 0, ...kept });
  }

  #begin(field: ReasoningField, part: JsonValue | undefined, out: GatewayEvent[]): void {
    this.#end(out);
    // Parts of the full reasoning text are not separated.
    const { summary, content } = this.#counts;
    if (field === 'summary' ? summary + content > 0 : summary > 0 && content === 0) {
      const extra = { extra: { [formatName]: { $separator: true } } };
      out.push({ type: 'reasoning-delta', block: this.#block, choice: 0, text: '\n\n', ...extra });
    }
    this.#counts[field] += 1;
    this.#part = { field, as: isObject(part) ? fieldsBeside(part, textField) : undefined, length: 0 };
    this.#isStartPending = true;
  }

  /** Ends the open part. Emits an empty part too. */
  #end(out: GatewayEvent[]): void {
    if (this.#isStartPending) this.#emitText('', out);
    this.#part = undefined;
  }

  #delta(field: ReasoningField, frame: JsonObject, index: JsonValue | undefined, out: GatewayEvent[]): void {
    this.#need(field, index, out);
    this.#emitText(textOf(frame.delta), out, frameFields(frame));
  }

  #rest(field: ReasoningField, whole: string, index: JsonValue | undefined, out: GatewayEvent[]): void {
    // A part that has ended is complete.
    if (this.#part === undefined && (typeof index !== 'number' || index < this.#counts[field])) return;
    this.#need(field, index, out);
    const rest = whole.slice(this.#part?.length ?? 0);
    if (rest !== '') this.#emitText(rest, out);
  }

  #need(field: ReasoningField, index: JsonValue | undefined, out: GatewayEvent[]): void {
    const behind = typeof index === 'number' && index >= this.#counts[field];
    if (this.#part?.field !== field || behind) this.#begin(field, undefined, out);
  }

  #emitText(text: string, out: GatewayEvent[], frame?: JsonObject): void {
    const part = this.#part;
    if (part === undefined || (text === '' && !this.#isStartPending && frame === undefined)) return;
    part.length += text.length;
    const fields: MutableObject = frame === undefined ? {} : { $frame: frame };
    if (this.#isStartPending) fields.$part = { place: part.field, as: part.as };
    this.#isStartPending = false;
    out.push({ type: 'reasoning-delta', block: this.#block, choice: 0, text, ...withExtra(fields) });
  }
}

const reasoningFields = setOf('type id summary content encrypted_content status');
const textField = setOf('text');
const proofField = setOf('encrypted_content');

const deltaFields = setOf(
  'type sequence_number item_id output_index content_index summary_index delta logprobs',
);

/** Returns the unknown fields of a delta; undefined for most. */
function frameFields(frame: JsonObject): JsonObject | undefined {
  let rest: MutableObject | undefined;
  for (const key in frame) {
    if (deltaFields.has(key) || key === '__proto__') continue;
    rest ??= {};
    rest[key] = frame[key];
  }
  return rest;
}

/** Returns the unknown fields of a delta as `extra`, to spread into an event. */
export function frameExtra(frame: JsonObject): { readonly extra?: Extra } {
  const fields = frameFields(frame);
  return fields === undefined ? nothing : withExtra({ $frame: fields });
}

const nothing: { readonly extra?: Extra } = {};
