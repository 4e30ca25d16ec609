import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { ChunkEncoder, numberOf } from '../_openai/chunks.ts';
import type { ReplyContext, WireFrame } from '../../sdk/format.ts';
import { writeUsage } from './usage.ts';
import { formatName, own } from './wire.ts';
import { writeFinish } from './finish.ts';
import { objectsOf } from '../_shared/fields.ts';
import { loseForeignReply } from '../_shared/foreign.ts';

const nothing: readonly WireFrame[] = [];
const noFields: JsonObject = {};

/** Writes a stream of text completions: pieces of text. */
export class TextStreamEncoder extends ChunkEncoder {
  /** The answers that have begun, and whether they are finished. */
  readonly #answers = new Map<number, { finished: boolean }>();

  constructor(context: ReplyContext, asksUsage?: boolean) {
    super({ format: formatName, prefix: 'cmpl-', object: 'text_completion' }, context, asksUsage);
  }

  protected write(event: GatewayEvent): readonly WireFrame[] {
    if ('extra' in event) loseForeignReply(event.extra, formatName, (path) => void this.lose(path));
    switch (event.type) {
      case 'head':
        this.begin(event, own(event.extra));
        return nothing;
      case 'text-start':
      case 'refusal-start':
        return this.#open(event.choice);
      case 'text-delta':
        if (event.logprobs !== undefined) this.lose('logprobs');
        return this.#say(event.choice, event.text, own(event.extra));
      // There is no other place for the words with which a model declines.
      case 'refusal-delta':
        return this.#say(event.choice, event.text, noFields);
      case 'finish':
        return this.#finish(event);
      case 'opaque':
        return this.losses.isOwn(event) ? this.#opaque(event.value) : nothing;
      case 'reasoning-delta':
        return this.lose('reasoning');
      case 'tool-start':
        return this.lose('tool-call');
      case 'media-start':
        return this.lose(`media.${event.media}`);
      case 'citation':
        return this.lose('citation');
      default:
        return nothing;
    }
  }

  protected ends(): WireFrame[] {
    const frames: WireFrame[] = [];
    if (this.#answers.size === 0) for (const frame of this.#open(0)) frames.push(frame);
    for (const [index, answer] of this.#answers) {
      if (!answer.finished) frames.push(this.#frame(index, '', 'stop', noFields));
      answer.finished = true;
    }
    return frames;
  }

  protected usageOf(usage: Usage | undefined): JsonObject {
    return writeUsage(usage);
  }

  protected shared({ chunk }: JsonObject): JsonValue | undefined {
    return chunk;
  }

  /** An answer that begins, with its prompt where the client wants to see it again. */
  #open(index: number): readonly WireFrame[] {
    if (this.#answers.has(index)) return nothing;
    this.#answers.set(index, { finished: false });
    // A provider that speaks this format has echoed the prompt by itself.
    const prompt = this.begin().own.$native === true ? '' : echoed(this.context.body, index);
    return prompt === '' ? nothing : [this.#frame(index, prompt, null, noFields)];
  }

  #say(index: number, text: string, fields: JsonObject): readonly WireFrame[] {
    const frames = this.#open(index);
    if (this.#answers.get(index)?.finished === true) return nothing;
    if (text === '' && fields === noFields) return frames;
    return [...frames, this.#frame(index, text, null, fields)];
  }

  #finish(event: Extract<GatewayEvent, { readonly type: 'finish' }>): readonly WireFrame[] {
    const frames = this.#open(event.choice);
    const answer = this.#answers.get(event.choice);
    if (answer === undefined || answer.finished) return nothing;
    answer.finished = true;
    const word = writeFinish(event.reason, event.format === formatName ? event.raw : undefined);
    return [...frames, this.#frame(event.choice, '', word, own(event.extra))];
  }

  #opaque(value: JsonObject): readonly WireFrame[] {
    const choices = objectsOf(value.choices);
    for (const choice of choices) this.#open(numberOf(choice));
    const { chunk } = this.begin().own;
    return [this.renamed({ ...value, ...(isObject(chunk) ? chunk : {}) }, choices)];
  }

  #frame(index: number, text: string, finish: string | null, { choice, chunk }: JsonObject): WireFrame {
    const written: MutableObject = { text, index, logprobs: null };
    if (isObject(choice)) Object.assign(written, choice);
    written.finish_reason = finish;
    const top = this.top();
    if (isObject(chunk)) Object.assign(top, chunk);
    return this.chunk(top, [written]);
  }
}

/** The prompt of an answer when the client asked for its echo; `n` answers follow each other for each of several prompts. */
function echoed({ echo, prompt, n }: JsonObject, index: number): string {
  if (echo !== true) return '';
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) return '';
  const one = (prompt as readonly JsonValue[])[Math.floor(index / (typeof n === 'number' && n > 0 ? n : 1))];
  return typeof one === 'string' ? one : '';
}
