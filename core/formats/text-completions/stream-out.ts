/** Writes a text completions stream. */
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { ChunkEncoder, numberOf } from '../_openai/chunks.ts';
import type { ReplyContext, WireFrame } from '../../sdk/format.ts';
import { writeUsage } from './usage.ts';
import { formatName, own } from './wire.ts';
import { finishWriter } from '../_openai/finish.ts';
import { objectsOf } from '../_shared/fields.ts';
import { dropForeignReply } from '../_shared/foreign.ts';

const nothing: readonly WireFrame[] = [];
const noFields: JsonObject = {};
const writeFinish = finishWriter(formatName, 'stop length content_filter');
const words = { format: formatName, prefix: 'cmpl-', object: 'text_completion', usage: writeUsage };

interface Answer {
  finished: boolean;
}

/** Writes a stream of text completions: pieces of text. */
export class TextStreamEncoder extends ChunkEncoder<Answer> {
  constructor(context: ReplyContext, asksUsage?: boolean) {
    super(words, context, asksUsage);
  }

  protected write(event: GatewayEvent): readonly WireFrame[] {
    if ('extra' in event) dropForeignReply(event.extra, formatName, (path) => void this.drop(path));
    switch (event.type) {
      case 'head':
        this.begin(event, own(event.extra));
        return nothing;
      case 'text-start':
      case 'refusal-start':
        return this.#begin(event.choice);
      case 'text-delta':
        if (event.logprobs !== undefined) this.drop('logprobs');
        return this.#textFrames(event.choice, event.text, own(event.extra));
      // There is no other place for the words with which a model declines.
      case 'refusal-delta':
        return this.#textFrames(event.choice, event.text, noFields);
      case 'finish':
        return this.#finish(event);
      case 'opaque':
        return this.losses.isOwn(event) ? this.#opaque(event.value) : nothing;
      case 'reasoning-delta':
        return this.drop('reasoning');
      case 'tool-start':
        return this.drop('tool-call');
      case 'media-start':
        return this.drop(`media.${event.media}`);
      case 'citation':
        return this.drop('citation');
      default:
        return nothing;
    }
  }

  protected stop(index: number): WireFrame {
    return this.#frame(index, '', 'stop', noFields);
  }

  /** Returns the state of an answer. Begins a new answer with its prompt, if the client requested the echo. */
  protected answer(index: number, frames: WireFrame[]): Answer {
    const known = this.answers.get(index);
    if (known !== undefined) return known;
    const answer = { finished: false };
    this.answers.set(index, answer);
    // A provider with this format has already echoed the prompt.
    const prompt = this.begin().own.$native === true ? '' : echoed(this.context.body, index);
    if (prompt !== '') frames.push(this.#frame(index, prompt, null, noFields));
    return answer;
  }

  #begin(index: number): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    this.answer(index, frames);
    return frames;
  }

  #textFrames(index: number, text: string, fields: JsonObject): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const { finished } = this.answer(index, frames);
    if (!finished && (text !== '' || fields !== noFields))
      frames.push(this.#frame(index, text, null, fields));
    return frames;
  }

  #finish(event: Extract<GatewayEvent, { readonly type: 'finish' }>): readonly WireFrame[] {
    const frames: WireFrame[] = [];
    const answer = this.answer(event.choice, frames);
    if (answer.finished) return nothing;
    answer.finished = true;
    frames.push(this.#frame(event.choice, '', writeFinish(event), own(event.extra)));
    return frames;
  }

  #opaque(value: JsonObject): readonly WireFrame[] {
    const choices = objectsOf(value.choices);
    for (const choice of choices) this.answer(numberOf(choice), []);
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

/** Returns the prompt of an answer, if the client requested the echo. With several prompts, `n` answers follow for each prompt. */
function echoed({ echo, prompt, n }: JsonObject, index: number): string {
  if (echo !== true) return '';
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) return '';
  const one = (prompt as readonly JsonValue[])[Math.floor(index / (typeof n === 'number' && n > 0 ? n : 1))];
  return typeof one === 'string' ? one : '';
}
