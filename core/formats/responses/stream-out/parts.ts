/** Encodes messages and reasoning as output items of a Responses stream, part by part. */
import type { Logprob } from '../../../model/chat.ts';
import type { Proof } from '../../../model/extra.ts';
import type { JsonObject, JsonValue, MutableObject } from '../../../model/json.ts';
import { writeDeltaToken, writeToken } from '../../_openai/logprobs.ts';
import { objectsOf } from '../../_shared/fields.ts';
import { sealProof } from '../../_shared/proof.ts';
import { formatName } from '../wire.ts';
import { OpenItem, type ItemStatus, type ItemStart } from './frames.ts';

/** Member of an item that holds reasoning: its summary, or its full text. */
export type ReasoningField = 'summary' | 'content';
/** Kind of a part: text or refusal of a message, or reasoning as summary or full text. */
export type PartKind = 'output_text' | 'refusal' | ReasoningField;

/** Wire form of a part: the list of its item that holds it, its type, the member with its text, and its event names. */
interface PartWords {
  readonly list: ReasoningField;
  readonly type: string;
  readonly says: 'text' | 'refusal';
  readonly added: string;
  readonly delta: string;
  readonly doneEvent: string;
  readonly done: string;
}

function partWords(
  type: string,
  words: string,
  list: ReasoningField = 'content',
  part = 'content_part',
): PartWords {
  return {
    list,
    type,
    says: type === 'refusal' ? type : 'text',
    added: `response.${part}.added`,
    delta: `response.${words}.delta`,
    doneEvent: `response.${words}.done`,
    done: `response.${part}.done`,
  };
}

const wires: Readonly<Record<PartKind, PartWords>> = {
  output_text: partWords('output_text', 'output_text'),
  refusal: partWords('refusal', 'refusal'),
  content: partWords('reasoning_text', 'reasoning_text'),
  summary: partWords('summary_text', 'reasoning_summary_text', 'summary', 'reasoning_summary_part'),
};

interface Part {
  readonly kind: PartKind;
  readonly words: PartWords;
  /** The part as its provider began it. */
  readonly as: JsonObject | undefined;
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: Logprob[];
}

/** Base class of items whose parts are written in sequence. */
abstract class TextItem extends OpenItem {
  protected readonly parts: Readonly<Record<ReasoningField, JsonObject[]>> = { summary: [], content: [] };
  protected part: Part | undefined;

  /** True while a part is open. */
  get speaks(): boolean {
    return this.part !== undefined;
  }

  /** Begins a part; `as` is the part as its provider began it. */
  begin(kind: PartKind, as?: JsonObject): void {
    this.endPart();
    const words = wires[kind];
    const { type, says, added } = words;
    this.part = { kind, words, as, text: '', annotations: [], logprobs: [] };
    const lists = kind === 'output_text' ? { annotations: [], logprobs: [] } : {};
    this.emitPart(kind, added, { part: { ...lists, ...as, type, [says]: '' } });
  }

  delta(text: string, logprobs: readonly Logprob[] | undefined, frame: JsonObject | undefined): void {
    const { part } = this;
    if (part === undefined) return;
    part.text += text;
    for (const one of logprobs ?? []) part.logprobs.push(one);
    this.emitPart(
      part.kind,
      part.words.delta,
      part.kind === 'output_text'
        ? { delta: text, logprobs: (logprobs ?? []).map(writeDeltaToken), ...frame }
        : { delta: text, ...frame },
    );
  }

  /** Ends the open part; `as` is the part as its provider ended it. */
  endPart(as?: JsonObject): void {
    const { part } = this;
    if (part === undefined) return;
    const { kind, text, logprobs } = part;
    const { list, says, doneEvent, done } = part.words;
    const scores = kind === 'output_text' ? { logprobs: logprobs.map(writeDeltaToken) } : {};
    this.emitPart(kind, doneEvent, { [says]: text, ...scores });
    const whole = finishedPart(part, as);
    this.emitPart(kind, done, { part: whole });
    this.parts[list].push(whole);
    this.part = undefined;
  }

  /** Says an event of a part. */
  protected emitPart(kind: PartKind, type: string, fields: JsonObject): void {
    const { writer, id: item_id, index: output_index, parts } = this;
    writer.emit(
      type,
      kind === 'summary'
        ? { item_id, output_index, summary_index: parts.summary.length, ...fields }
        : { item_id, output_index, content_index: parts.content.length, ...fields },
    );
  }
}

function finishedPart(open: Part, as?: JsonObject): JsonObject {
  const { kind, as: begun, text, annotations, logprobs } = open;
  const { type } = open.words;
  if (kind === 'refusal') return { ...as, type, refusal: text };
  // Providers send no other fields at the end of a reasoning part than at its start.
  if (kind !== 'output_text') return { ...begun, type, text };
  if (as === undefined)
    return { type, text, annotations, logprobs: logprobs.map((token) => writeToken(token, bytesOf)) };
  const part: MutableObject = { ...as, type, text };
  if (part.annotations !== undefined || annotations.length > 0) part.annotations = annotations;
  return part;
}

function bytesOf({ token, bytes }: Logprob): JsonValue {
  return Array.isArray(bytes) ? (bytes as JsonValue) : [...Buffer.from(token)];
}

/** A message of the assistant: parts of text and refusals. */
export class MessageItem extends TextItem {
  constructor(start: ItemStart) {
    super('message', start);
    const item = this.added ?? { type: 'message', status: 'in_progress', role: 'assistant' };
    this.emitAdded({ ...item, id: this.id, content: [] });
  }

  /** Returns false when the open part takes no annotation. */
  annotate(write: (length: number) => JsonObject | undefined): boolean {
    const { part } = this;
    const annotation = part?.kind === 'output_text' ? write(part.text.length) : undefined;
    if (part === undefined || annotation === undefined) return false;
    this.emitPart(part.kind, 'response.output_text.annotation.added', {
      annotation_index: part.annotations.length,
      annotation,
    });
    part.annotations.push(annotation);
    return true;
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.endPart();
    const item = done ?? { ...(this.added ?? { type: 'message', role: 'assistant' }), status };
    return this.emitDone({ ...item, id: this.id, content: this.parts.content });
  }
}

/** The model's reasoning: parts of a summary, or of its own text, and the proof of it. */
export class ReasoningItem extends TextItem {
  /** Value of `encrypted_content`. */
  #proof: string | undefined;

  constructor(start: ItemStart) {
    super('reasoning', start);
    const { id, added } = start;
    const content = added?.content === undefined ? {} : { content: [] };
    this.emitAdded({ ...(added ?? { type: 'reasoning' }), id, summary: [], ...content });
  }

  /** Writes a proof in the finished item. `on`: kind of block that it belongs to, if that is not reasoning. */
  prove(proof: Proof, on?: 'text' | 'tool-call'): void {
    this.#proof = proof.format === formatName && on === undefined ? proof.value : sealProof(proof, on);
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.endPart();
    const { summary, content } = this.parts;
    const base = done ?? this.added ?? { type: 'reasoning' };
    const item: MutableObject = { ...base, id: this.id, summary: finished(summary, done?.summary) };
    if (done === undefined && status === 'incomplete') item.status = status;
    if (content.length > 0 || base.content !== undefined)
      item.content = base.content === null && content.length === 0 ? null : finished(content, done?.content);
    delete item.encrypted_content;
    if (this.#proof !== undefined) item.encrypted_content = this.#proof;
    else if (base.encrypted_content === null) item.encrypted_content = null;
    return this.emitDone(item);
  }
}

/** Returns the parts as written, with unknown fields of those that the provider finished. */
function finished(parts: readonly JsonObject[], done: JsonValue | undefined): readonly JsonObject[] {
  const theirs = objectsOf(done);
  return theirs.length === 0 ? parts : parts.map((part, index) => ({ ...theirs[index], ...part }));
}
