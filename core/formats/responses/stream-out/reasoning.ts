import type { Proof } from '../../../model/extra.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { sealProof } from '../../_shared/proof.ts';
import { OpenItem, type ItemStatus, type ItemStart } from './frames.ts';
import { objectsOf } from '../../_shared/fields.ts';
import { formatName } from '../wire.ts';

/** Where reasoning is shown: as a summary, or as the model's own text. */
export type ReasoningPlace = 'summary' | 'content';

const wires = {
  summary: {
    type: 'summary_text',
    part: 'response.reasoning_summary_part',
    text: 'response.reasoning_summary_text',
    index: 'summary_index',
  },
  content: {
    type: 'reasoning_text',
    part: 'response.content_part',
    text: 'response.reasoning_text',
    index: 'content_index',
  },
} as const;

/** The model's reasoning: parts of a summary, or of its own text, and the proof of it. */
export class ReasoningItem extends OpenItem {
  readonly #parts: Record<ReasoningPlace, JsonObject[]> = { summary: [], content: [] };
  #open: { readonly place: ReasoningPlace; readonly as: JsonObject | undefined; text: string } | undefined;
  #proof: Proof | undefined;
  #on: 'text' | 'tool-call' | undefined;

  constructor(start: ItemStart) {
    super('reasoning', start);
    const { id, added } = start;
    const content = added?.content === undefined ? {} : { content: [] };
    this.sayAdded({ ...(added ?? { type: 'reasoning' }), id, summary: [], ...content });
  }

  get speaks(): boolean {
    return this.#open !== undefined;
  }

  /** Begins a part; `as` is the part as its provider began it. */
  begin(place: ReasoningPlace, as?: JsonObject): void {
    this.endPart();
    this.#open = { place, as, text: '' };
    this.#tell(place, `${wires[place].part}.added`, {
      part: { ...as, type: wires[place].type, text: '' },
    });
  }

  delta(text: string, frame: JsonObject | undefined): void {
    const open = this.#open;
    if (open === undefined) return;
    open.text += text;
    this.#tell(open.place, `${wires[open.place].text}.delta`, { delta: text, ...frame });
  }

  endPart(): void {
    const open = this.#open;
    if (open === undefined) return;
    const { place, as, text } = open;
    const part = { ...as, type: wires[place].type, text };
    this.#tell(place, `${wires[place].text}.done`, { text });
    this.#tell(place, `${wires[place].part}.done`, { part });
    this.#parts[place].push(part);
    this.#open = undefined;
  }

  /** The proof that the finished item holds; `on` says what it is a proof of when that is no reasoning. */
  prove(proof: Proof, on?: 'text' | 'tool-call'): void {
    this.#proof = proof;
    this.#on = on;
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.endPart();
    const { summary, content } = this.#parts;
    const base = done ?? this.added ?? { type: 'reasoning' };
    const item: MutableObject = { ...base, id: this.id, summary: finished(summary, done?.summary) };
    if (done === undefined && status === 'incomplete') item.status = status;
    if (content.length > 0 || base.content !== undefined)
      item.content = base.content === null && content.length === 0 ? null : finished(content, done?.content);
    delete item.encrypted_content;
    const proof = this.#proof;
    if (proof !== undefined)
      item.encrypted_content =
        proof.format === formatName && this.#on === undefined ? proof.value : sealProof(proof, this.#on);
    else if (base.encrypted_content === null) item.encrypted_content = null;
    return this.sayDone(item);
  }

  #tell(place: ReasoningPlace, type: string, fields: JsonObject): void {
    const at = {
      item_id: this.id,
      output_index: this.index,
      [wires[place].index]: this.#parts[place].length,
    };
    this.writer.say(type, Object.assign(at, fields));
  }
}

/** The parts as they were said, with the unknown fields of those that the provider finished. */
function finished(parts: readonly JsonObject[], done: JsonObject[string]): readonly JsonObject[] {
  const theirs = objectsOf(done);
  return theirs.length === 0 ? parts : parts.map((part, index) => ({ ...theirs[index], ...part }));
}
