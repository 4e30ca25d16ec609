/** Writes a chat completions stream. */
import type { Logprob } from '../../../model/chat.ts';
import type { GatewayEvent, HeadEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { ChunkEncoder, spreadShared } from '../../_openai/chunks.ts';
import { isReplyEvent } from '../../_shared/blocks.ts';
import type { ReplyContext, WireFrame } from '../../../sdk/format.ts';
import { ChoiceEncoder, type ChoiceEvent, type ReplyScope } from './choice.ts';
import { writeLogprobs } from '../logprobs.ts';
import { writeUsage } from '../usage.ts';
import { formatName, own, roleDelta } from '../wire.ts';
import { objectsOf, listOf } from '../../_shared/fields.ts';

const nothing: readonly WireFrame[] = [];
const noFields: JsonObject = {};
const words = {
  format: formatName,
  prefix: 'chatcmpl-',
  object: 'chat.completion.chunk',
  usage: writeUsage,
};

/** Writes a chat completion stream: role first. */
export class ChatStreamEncoder extends ChunkEncoder<ChoiceEncoder> {
  readonly #scope: ReplyScope;

  constructor(context: ReplyContext, asksUsage?: boolean) {
    super(words, context, asksUsage);
    const { body } = context;
    this.#scope = {
      legacy: Array.isArray(body.functions) && !Array.isArray(body.tools),
      created: context.created,
      callIds: new Map(),
      drop: (name) => this.losses.drop(name),
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

  protected stop(index: number, answer: ChoiceEncoder): WireFrame {
    return this.#frame(index, {}, noFields, answer.naturalFinish);
  }

  #begin(head: HeadEvent): readonly WireFrame[] {
    if (this.begun) return nothing;
    this.begin(head, own(head.extra));
    const frames: WireFrame[] = [];
    this.answer(0, frames);
    return frames;
  }

  /** Returns the encoder of an answer. Begins a new answer with its role chunk. */
  protected answer(index: number, frames: WireFrame[]): ChoiceEncoder {
    const known = this.answers.get(index);
    if (known !== undefined) return known;
    const encoder = new ChoiceEncoder(this.#scope);
    this.answers.set(index, encoder);
    const fields = this.begin().own;
    const delta = isObject(fields.$role) ? fields.$role : roleDelta;
    // Members that only the provider's first chunk had are written to the first chunk again.
    const first = index === 0 && isObject(fields.$first) ? { chunk: fields.$first } : noFields;
    frames.push(this.#frame(index, delta, first));
    return encoder;
  }

  #choice(event: ChoiceEvent): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const encoder = this.answer(event.choice, frames);
    if (encoder.finished) return frames;
    const fields = own(event.extra);
    if (event.type === 'finish') {
      frames.push(this.#frame(event.choice, {}, fields, encoder.finish(event)));
      return frames;
    }
    const delta = encoder.delta(event);
    if (delta === undefined) return frames;
    const logprobs = event.type === 'text-delta' ? event.logprobs : undefined;
    frames.push(this.#frame(event.choice, delta, fields, null, logprobs));
    return frames;
  }

  #opaque(value: JsonObject): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const choices = objectsOf(value.choices);
    const open: JsonObject[] = [];
    for (const choice of choices) {
      const index = typeof choice.index === 'number' ? choice.index : 0;
      if (this.answer(index, frames).finished) continue;
      open.push({ ...choice, index, delta: isObject(choice.delta) ? choice.delta : {}, finish_reason: null });
    }
    if (choices.length > 0 && open.length === 0) return frames;
    frames.push(this.renamed(value, open));
    return frames;
  }

  #frame(
    index: number,
    delta: JsonObject,
    fields: JsonObject,
    finish: string | null = null,
    logprobs?: readonly Logprob[],
  ): WireFrame {
    const top = this.top(fields.$withoutChunk);
    if (isObject(fields.chunk)) Object.assign(top, fields.chunk);
    const choice: MutableObject = { index, delta: deltaOf(delta, fields) };
    spreadShared(choice, this.begin().own.$choice, fields.$withoutChoice);
    if (logprobs !== undefined) choice.logprobs = writeLogprobs(logprobs);
    if (isObject(fields.choice)) Object.assign(choice, fields.choice);
    choice.finish_reason = finish;
    return this.chunk(top, [choice]);
  }
}

/** Returns the computed delta with what the provider wrote beside it: its empty fields first, its unknown ones last. */
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
