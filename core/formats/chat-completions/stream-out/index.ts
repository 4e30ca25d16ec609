import type { GatewayEvent, HeadEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import { ChunkEncoder } from '../../_openai/chunks.ts';
import { isReplyEvent } from '../../_shared/blocks.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import type { ReplyContext, WireFrame } from '../../../sdk/format.ts';
import { ChoiceEncoder, type ChoiceEvent, type Piece, type ReplyScope } from './choice.ts';
import { completionId } from '../../_openai/ids.ts';
import { writeUsage } from '../usage.ts';
import { formatName, own } from '../wire.ts';
import { objectsOf, listOf } from '../../_shared/fields.ts';

/** How a reply's id begins. */
const prefix = 'chatcmpl-';
const nothing: readonly WireFrame[] = [];
const noFields: JsonObject = {};
const roleDelta: JsonObject = { role: 'assistant', content: '', refusal: null };

/** Writes a chat completion stream: role first. */
export class ChatStreamEncoder extends ChunkEncoder {
  readonly #scope: ReplyScope;
  readonly #answers = new Map<number, ChoiceEncoder>();
  #head: { readonly id: string; readonly created: number; readonly own: JsonObject } | undefined;

  constructor(context: ReplyContext) {
    super(formatName, context);
    const { body } = context;
    this.#scope = {
      legacy: Array.isArray(body.functions) && !Array.isArray(body.tools),
      created: context.created,
      callIds: new Map(),
      lose: (name) => this.lose(name),
    };
  }

  protected write(event: GatewayEvent): readonly WireFrame[] {
    if (!isReplyEvent(event)) return nothing;
    switch (event.type) {
      case 'head':
        return this.#begin(event);
      case 'usage':
        return nothing;
      case 'opaque':
        return this.losses.isOwn(event) ? this.#opaque(event.value) : nothing;
      default:
        return this.#choice(event);
    }
  }

  protected ends(): WireFrame[] {
    const frames: WireFrame[] = [];
    if (this.#answers.size === 0) this.#answer(0, frames);
    for (const [index, encoder] of this.#answers) {
      if (encoder.finished) continue;
      frames.push(this.#frame(index, { delta: {}, finish: encoder.naturalFinish }, noFields));
      encoder.close();
    }
    return frames;
  }

  protected top(usage: Usage | undefined): JsonObject {
    return { ...this.#top(noFields), choices: [], usage: writeUsage(usage) };
  }

  #begin(head: HeadEvent): readonly WireFrame[] {
    if (this.#head !== undefined) return nothing;
    this.#head = {
      id: completionId(prefix, head.id),
      created: head.created ?? this.context.created,
      own: own(head.extra),
    };
    const frames: WireFrame[] = [];
    this.#answer(0, frames);
    return frames;
  }

  /** The answer of this number, begun with its role chunk. */
  #answer(index: number, frames: WireFrame[]): ChoiceEncoder {
    const known = this.#answers.get(index);
    if (known !== undefined) return known;
    const encoder = new ChoiceEncoder(this.#scope);
    this.#answers.set(index, encoder);
    const fields = this.#started().own;
    const delta = isObject(fields.$role) ? fields.$role : roleDelta;
    // What stood on the first chunk alone stands there again.
    const first = index === 0 && isObject(fields.$first) ? { chunk: fields.$first } : noFields;
    frames.push(this.#frame(index, { delta }, first));
    return encoder;
  }

  #started(): { readonly id: string; readonly created: number; readonly own: JsonObject } {
    this.#head ??= { id: completionId(prefix, ''), created: this.context.created, own: noFields };
    return this.#head;
  }

  #choice(event: ChoiceEvent): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const encoder = this.#answer(event.choice, frames);
    if (encoder.finished) return frames;
    const piece = encoder.piece(event);
    if (piece !== undefined) frames.push(this.#frame(event.choice, piece, own(event.extra)));
    return frames;
  }

  /** A chunk of this format goes as it came, under this reply's name. */
  #opaque(value: JsonObject): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const choices = objectsOf(value.choices);
    const open: JsonObject[] = [];
    for (const choice of choices) {
      const index = typeof choice.index === 'number' ? choice.index : 0;
      if (this.#answer(index, frames).finished) continue;
      open.push({ ...choice, index, delta: isObject(choice.delta) ? choice.delta : {}, finish_reason: null });
    }
    if (choices.length > 0 && open.length === 0) return frames;
    const { id, created } = this.#started();
    const usage = this.asksUsage ? { usage: null } : noFields;
    frames.push({
      json: {
        ...value,
        id,
        object: 'chat.completion.chunk',
        created,
        model: this.context.model,
        choices: open,
        ...usage,
      },
    });
    return frames;
  }

  /** What stands at the top of every chunk. */
  #top(fields: JsonObject): MutableObject {
    const { id, created, own: shared } = this.#started();
    const top: MutableObject = { id, object: 'chat.completion.chunk', created, model: this.context.model };
    spread(top, shared.chunk, fields.$withoutChunk);
    if (isObject(fields.chunk)) Object.assign(top, fields.chunk);
    return top;
  }

  #frame(index: number, piece: Piece, fields: JsonObject): WireFrame {
    const chunk = this.#top(fields);
    const choice: MutableObject = { index, delta: deltaOf(piece.delta, fields) };
    spread(choice, this.#started().own.$choice, fields.$withoutChoice);
    if (piece.beside !== undefined) Object.assign(choice, piece.beside);
    if (isObject(fields.choice)) Object.assign(choice, fields.choice);
    choice.finish_reason = piece.finish ?? null;
    chunk.choices = [choice];
    if (this.asksUsage) chunk.usage = null;
    return { json: chunk };
  }
}

/** The computed delta with what the provider wrote beside it: its empty fields first, its unknown ones last. */
function deltaOf(delta: JsonObject, fields: JsonObject): JsonObject {
  if (fields.$delta === undefined && fields.delta === undefined) return delta;
  const { $delta, delta: unknown } = fields;
  const merged: MutableObject = { ...(isObject($delta) ? $delta : {}), ...delta };
  if (isObject(unknown)) {
    const { reasoning_details: strays, ...rest } = unknown;
    Object.assign(merged, rest);
    if (Array.isArray(strays)) {
      const present = listOf(merged.reasoning_details);
      merged.reasoning_details = [...present, ...(strays as readonly JsonValue[])];
    }
  }
  return merged;
}

function spread(target: MutableObject, shared: JsonValue | undefined, without: JsonValue | undefined): void {
  if (!isObject(shared)) return;
  const left: readonly unknown[] = Array.isArray(without) ? without : [];
  for (const key in shared) if (!left.includes(key)) target[key] = shared[key];
}
