import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { BlockCounter, endOf } from '../_shared/blocks.ts';
import { ChunkDecoder, differing, finishOf, numberOf } from '../_openai/chunks.ts';
import { defined, isText, setOf } from '../_shared/fields.ts';
import type { Usage } from '../../model/usage.ts';
import { readUsage } from './usage.ts';
import { formatName, mostChoices, withExtra } from './wire.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';
import { readFinish } from '../_openai/finish.ts';
import type { Kept } from '../_shared/extra.ts';

/** With the random string on every chunk, which is no part of the answer. */
const chunkFields = setOf('id object created model choices usage obfuscation');
const choiceFields = setOf('index text finish_reason obfuscation');
/** Default members of every choice. */
const usual: JsonObject = { logprobs: null };
/** Most chunks without an answer that are held until the reply's id is known. */
const mostHeld = 64;

interface Answer {
  readonly choice: number;
  block: number | undefined;
  finished: boolean;
}

/** Reads a stream of text completions. */
export class TextStreamDecoder extends ChunkDecoder<Answer> {
  readonly #blocks = new BlockCounter();
  /** Unknown fields that every chunk repeats. */
  #shared: JsonObject = {};

  constructor() {
    super(formatName, mostHeld);
  }

  protected usageIn({ usage }: JsonObject): Usage | undefined {
    return isObject(usage) ? readUsage(usage) : undefined;
  }

  protected head(chunk: JsonObject): Kept {
    const shared = differing(chunk, chunkFields, {});
    this.#shared = shared ?? {};
    // An echo of the prompt is in the text already.
    return withExtra({ $native: true, ...defined({ chunk: shared }) });
  }

  protected read(
    chunk: JsonObject,
    choices: readonly JsonObject[],
    _isFirst: boolean,
    events: GatewayEvent[],
  ): void {
    const unknown = differing(chunk, chunkFields, this.#shared);
    if (choices.length === 0 && unknown !== undefined) {
      const { usage: _, ...value } = chunk;
      events.push({ type: 'opaque', format: formatName, value });
    }
    for (const choice of choices) this.#choice(choice, unknown, events);
  }

  protected stop(answer: Answer, events: GatewayEvent[]): void {
    finish(answer, 'stop', noExtra, events);
  }

  #choice(choice: JsonObject, chunk: JsonObject | undefined, events: GatewayEvent[]): void {
    const index = numberOf(choice);
    if (index >= mostChoices) throw unusableResponse('sent too many choices');
    let answer = this.answers.get(index);
    if (answer === undefined)
      this.answers.set(index, (answer = { choice: index, block: undefined, finished: false }));
    if (answer.finished) return;
    const beside = differing(choice, choiceFields, usual);
    let extra =
      beside === undefined && chunk === undefined ? noExtra : withExtra(defined({ choice: beside, chunk }));
    if (isText(choice.text)) {
      if (answer.block === undefined) {
        answer.block = this.#blocks.next();
        events.push({ type: 'text-start', block: answer.block, choice: index });
      }
      events.push({ type: 'text-delta', block: answer.block, choice: index, text: choice.text, ...extra });
      extra = noExtra;
    }
    const word = finishOf(choice);
    if (word !== undefined) finish(answer, word, extra, events);
    else if (extra.extra !== undefined) {
      events.push({
        type: 'opaque',
        format: formatName,
        value: { ...chunk, choices: [choice] },
        choice: index,
      });
    }
  }
}

function finish(answer: Answer, raw: string, extra: Kept, events: GatewayEvent[]): void {
  const { choice } = answer;
  answer.finished = true;
  if (answer.block !== undefined) events.push(endOf('text', answer.block, choice));
  events.push({ type: 'finish', choice, reason: readFinish(raw), raw, format: formatName, ...extra });
}

const noExtra: Kept = {};
