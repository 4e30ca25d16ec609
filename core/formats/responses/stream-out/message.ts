import type { Logprob } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { OpenItem, type ItemStatus, type ItemStart } from './frames.ts';
import { writeDeltaToken } from '../../_openai/logprobs.ts';
import { writeLogprobs } from '../logprobs.ts';

type Kind = 'output_text' | 'refusal';

interface Part {
  readonly kind: Kind;
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: Logprob[];
}

/** A message of the assistant: parts of text and refusals, one after the other. */
export class MessageItem extends OpenItem {
  readonly #content: JsonObject[] = [];
  #part: Part | undefined;

  constructor(start: ItemStart) {
    super('message', start);
    const item = this.added ?? { type: 'message', status: 'in_progress', role: 'assistant' };
    this.sayAdded({ ...item, id: this.id, content: [] });
  }

  /** A part is being said. */
  get speaks(): boolean {
    return this.#part !== undefined;
  }

  /** Begins a part; `as` is the part as its provider began it. */
  begin(kind: Kind, as?: JsonObject): void {
    this.endPart();
    this.#part = { kind, text: '', annotations: [], logprobs: [] };
    const part =
      kind === 'refusal'
        ? { ...as, type: kind, refusal: '' }
        : { annotations: [], logprobs: [], ...as, type: kind, text: '' };
    this.#tell('response.content_part.added', { part });
  }

  delta(text: string, logprobs: readonly Logprob[] | undefined, frame: JsonObject | undefined): void {
    const part = this.#part;
    if (part === undefined) return;
    part.text += text;
    if (part.kind === 'refusal') return this.#tell('response.refusal.delta', { delta: text, ...frame });
    for (const one of logprobs ?? []) part.logprobs.push(one);
    this.#tell('response.output_text.delta', {
      delta: text,
      logprobs: (logprobs ?? []).map(writeDeltaToken),
      ...frame,
    });
  }

  /** False where the open part takes no annotation. */
  annotate(write: (length: number) => JsonObject | undefined): boolean {
    const part = this.#part;
    const annotation = part?.kind === 'output_text' ? write(part.text.length) : undefined;
    if (part === undefined || annotation === undefined) return false;
    this.#tell('response.output_text.annotation.added', {
      annotation_index: part.annotations.length,
      annotation,
    });
    part.annotations.push(annotation);
    return true;
  }

  /** Ends the open part; `as` is the part as its provider ended it. */
  endPart(as?: JsonObject): void {
    const part = this.#part;
    if (part === undefined) return;
    const done =
      part.kind === 'refusal' ? { ...as, type: part.kind, refusal: part.text } : textPart(part, as);
    if (part.kind === 'refusal') this.#tell('response.refusal.done', { refusal: part.text });
    else
      this.#tell('response.output_text.done', {
        text: part.text,
        logprobs: part.logprobs.map(writeDeltaToken),
      });
    this.#tell('response.content_part.done', { part: done });
    this.#content.push(done);
    this.#part = undefined;
  }

  close(status: ItemStatus, done: JsonObject | undefined): JsonObject {
    this.endPart();
    const item = done ?? { ...(this.added ?? { type: 'message', role: 'assistant' }), status };
    return this.sayDone({ ...item, id: this.id, content: this.#content });
  }

  #tell(type: string, fields: JsonObject): void {
    const { writer, id, index } = this;
    writer.say(type, { item_id: id, output_index: index, content_index: this.#content.length, ...fields });
  }
}

function textPart({ kind, text, annotations, logprobs }: Part, as: JsonObject | undefined): JsonObject {
  if (as === undefined) return { type: kind, text, annotations, logprobs: writeLogprobs(logprobs) };
  const part: MutableObject = { ...as, type: kind, text };
  if (part.annotations !== undefined || annotations.length > 0) part.annotations = annotations;
  return part;
}
