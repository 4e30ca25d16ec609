/** Reads a message in a provider's stream. */
import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { readLogprobs } from '../../_openai/logprobs.ts';
import { readAnnotation } from '../citations.ts';
import { frameExtra, ItemDecoder } from './items.ts';
import { objectsOf, textOf, fieldsBeside, setOf } from '../../_shared/fields.ts';
import { withExtra, unknown } from '../wire.ts';

interface Part {
  readonly block: number;
  readonly kind: 'text' | 'refusal';
  length: number;
  annotations: number;
  /** True after any log probability. */
  scored: boolean;
  /** The part as it was finished. */
  done: JsonObject | undefined;
}

/** A message: each of its parts is a block. */
export class MessageDecoder extends ItemDecoder {
  readonly #nextBlock: () => number;
  /** The item as it was added, until its first part is sent. */
  #item: JsonObject | undefined;
  #part: Part | undefined;
  #count = 0;

  constructor(nextBlock: () => number, item: JsonObject) {
    super();
    this.#nextBlock = nextBlock;
    this.#item = item;
  }

  override frame(frame: JsonObject, out: GatewayEvent[]): void {
    switch (frame.type) {
      case 'response.output_text.delta':
        return this.#delta('text', frame, out);
      case 'response.refusal.delta':
        return this.#delta('refusal', frame, out);
      case 'response.content_part.added':
        this.#begin(isObject(frame.part) ? frame.part : {}, out);
        return;
      case 'response.output_text.done':
        this.#rest('text', frame, frame, out);
        return;
      case 'response.refusal.done':
        this.#rest('refusal', frame, frame, out);
        return;
      case 'response.output_text.annotation.added':
        if (isObject(frame.annotation)) this.#cite(frame.annotation, this.#need('text', frame, out), out);
        return;
      case 'response.content_part.done':
        if (isObject(frame.part)) this.#complete(frame.part, frame, out);
        return;
      default:
        super.frame(frame, out);
    }
  }

  done(item: JsonObject, _frame: JsonObject, out: GatewayEvent[]): void {
    const parts = objectsOf(item.content);
    for (let index = Math.max(0, this.#count - 1); index < parts.length; index += 1) {
      const part = parts[index];
      if (part === undefined) continue;
      if (index >= this.#count) this.#begin(part, out);
      if (this.#part?.done === undefined) this.#complete(part, { content_index: index }, out);
    }
    const $done = fieldsBeside(item, contentField);
    if (this.#part === undefined) {
      // A message without parts is passed on too, because it exists.
      const block = this.#nextBlock();
      const extra = this.#takeItem();
      out.push(
        { type: 'text-start', block, choice: 0, ...withExtra(extra) },
        { type: 'text-end', block, choice: 0, ...withExtra({ $done }) },
      );
    } else this.#end(out, { $done });
  }

  #begin(as: JsonObject, out: GatewayEvent[]): Part {
    this.#end(out, {});
    const kind = as.type === 'refusal' ? 'refusal' : 'text';
    const part: Part = {
      block: this.#nextBlock(),
      kind,
      length: 0,
      annotations: 0,
      scored: false,
      done: undefined,
    };
    this.#part = part;
    this.#count += 1;
    const $part = fieldsBeside(as, streamedFields);
    if (kind === 'text' && as.annotations !== undefined) $part.annotations = [];
    if (kind === 'text' && as.logprobs !== undefined) $part.logprobs = [];
    const fields = { ...this.#takeItem(), $part, ...unknown(as, partFields) };
    out.push({ type: `${kind}-start`, block: part.block, choice: 0, ...withExtra(fields) });
    return part;
  }

  #takeItem(): JsonObject {
    const item = this.#item;
    this.#item = undefined;
    return item === undefined ? {} : { $item: item, ...unknown(item, messageFields) };
  }

  /** Returns the open part; begun here when the upstream forgot to. */
  #need(kind: Part['kind'], frame: JsonObject, out: GatewayEvent[]): Part {
    const part = this.#part;
    const index = frame.content_index;
    const behind = typeof index === 'number' && index >= this.#count;
    if (part !== undefined && part.kind === kind && !behind) return part;
    return this.#begin({ type: kind === 'text' ? 'output_text' : 'refusal' }, out);
  }

  #delta(kind: Part['kind'], frame: JsonObject, out: GatewayEvent[]): void {
    this.#emitText(this.#need(kind, frame, out), textOf(frame.delta), frame, out);
  }

  #emitText(part: Part, text: string, frame: JsonObject, out: GatewayEvent[]): void {
    const read = readLogprobs(frame.logprobs);
    const logprobs = read.length === 0 ? undefined : read;
    const extra = frameExtra(frame);
    if (text === '' && logprobs === undefined && extra.extra === undefined) return;
    part.length += text.length;
    const base = { block: part.block, choice: 0, text, ...extra };
    if (part.kind === 'refusal') out.push({ type: 'refusal-delta', ...base });
    else if (logprobs === undefined) out.push({ type: 'text-delta', ...base });
    else {
      part.scored = true;
      out.push({ type: 'text-delta', ...base, logprobs });
    }
  }

  /** Returns the part of the whole text that was not sent in any delta. `as` has the whole text and its log probabilities. */
  #rest(kind: Part['kind'], as: JsonObject, frame: JsonObject, out: GatewayEvent[]): Part {
    const part = this.#need(kind, frame, out);
    const scores = !part.scored && as.logprobs !== undefined ? { logprobs: as.logprobs } : {};
    this.#emitText(part, textOf(as[kind]).slice(part.length), scores, out);
    return part;
  }

  #cite(annotation: JsonObject, part: Part, out: GatewayEvent[]): void {
    part.annotations += 1;
    out.push({ type: 'citation', block: part.block, choice: 0, citation: readAnnotation(annotation) });
  }

  /** Ends a part: sends the text that no delta had. */
  #complete(as: JsonObject, frame: JsonObject, out: GatewayEvent[]): void {
    const part = this.#rest(as.type === 'refusal' ? 'refusal' : 'text', as, frame, out);
    for (const annotation of objectsOf(as.annotations).slice(part.annotations))
      this.#cite(annotation, part, out);
    part.done = as;
  }

  #end(out: GatewayEvent[], fields: JsonObject): void {
    const part = this.#part;
    if (part === undefined) return;
    this.#part = undefined;
    const content: MutableObject = { ...fields };
    if (part.done !== undefined) {
      const $partDone = fieldsBeside(part.done, streamedFields);
      if (part.kind === 'text' && part.done.annotations !== undefined) $partDone.annotations = [];
      content.$partDone = $partDone;
    }
    out.push({ type: `${part.kind}-end`, block: part.block, choice: 0, ...withExtra(content) });
  }
}

const contentField = setOf('content');
/** Fields of a part that events already carry. */
const streamedFields = setOf('text refusal annotations');
const partFields = setOf('type text refusal annotations logprobs');
const messageFields = setOf('type id role status content');
