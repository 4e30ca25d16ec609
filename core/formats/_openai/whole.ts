/** Whole completions as folded streams. */
import type { GatewayEvent, HeadEvent } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { FrameFold, StreamEncoder, WholeEncoder, WireFrame } from '../../sdk/format.ts';
import { objectsOf, setOf } from '../_shared/fields.ts';
import { folded } from '../_shared/folded.ts';
import { checkCompletion, type ChunkDecoder } from './chunks.ts';

type FinishEvent = Extract<GatewayEvent, { readonly type: 'finish' }>;

/**
 * Returns the events of a provider's non-streamed completion: the same as those of an equal stream. `$usage: false` in the head records
 * that it had no usage, so that the same body can be encoded again. Throws the error in the body, if there is one.
 */
export function unfolded(
  format: string,
  body: JsonObject,
  chunks: readonly JsonObject[],
  decoder: ChunkDecoder<{ readonly finished: boolean }>,
): GatewayEvent[] {
  checkCompletion(body);
  const events = chunks.flatMap((chunk) => decoder.chunk(chunk));
  for (const event of decoder.end()) events.push(event);
  return isObject(body.usage)
    ? events
    : events.map((event) => (event.type === 'head' ? marked(event, format, { $usage: false }) : event));
}

/** Returns the event with more of what only a format knows of it. */
export function marked<Event extends HeadEvent | FinishEvent>(
  event: Event,
  format: string,
  more: JsonObject,
): Event {
  return { ...event, extra: { ...event.extra, [format]: { ...event.extra?.[format], ...more } } };
}

/** Encodes the reverse: folds chunks into a completion. `finished`: called at the end of each choice. */
export function gathered(
  encoder: StreamEncoder,
  fold: FrameFold,
  own: (extra: Extra | undefined) => JsonObject,
  finished: (event: FinishEvent) => void = () => {},
): WholeEncoder {
  const whole = folded(encoder, fold);
  let tellsUsage = true;
  return {
    event(event) {
      if (event.type === 'head' && own(event.extra).$usage === false) tellsUsage = false;
      if (event.type === 'usage') tellsUsage = true;
      whole.event(event);
      if (event.type === 'finish') finished(event);
    },
    end() {
      const { usage, ...reply } = whole.end();
      return tellsUsage && usage !== undefined ? { ...reply, usage } : reply;
    },
  };
}

const chunkFields = setOf('choices object usage');

/** Puts the chunks of one completion together. `Answer` is what is known of one of its answers. */
export abstract class CompletionFold<Answer> implements FrameFold {
  readonly #object: string;
  readonly #top: MutableObject = {};
  readonly #answers = new Map<number, Answer>();
  #usage: JsonObject | undefined;

  /** `object` is what the whole calls itself. */
  constructor(object: string) {
    this.#object = object;
  }

  protected abstract begin(): Answer;
  protected abstract add(answer: Answer, choice: JsonObject): void;
  /** Returns the answer as it stands among the `choices`. */
  protected abstract whole(index: number, answer: Answer): JsonObject;

  frame(frame: WireFrame): void {
    if ('text' in frame) return;
    const chunk = frame.json;
    for (const key in chunk) if (!chunkFields.has(key)) this.#top[key] = chunk[key];
    if (isObject(chunk.usage)) this.#usage = chunk.usage;
    for (const choice of objectsOf(chunk.choices))
      this.add(this.answer(typeof choice.index === 'number' ? choice.index : 0), choice);
  }

  end(): JsonObject {
    const choices = [...this.#answers]
      .toSorted(([first], [second]) => first - second)
      .map(([index, answer]) => this.whole(index, answer));
    const { id, created, model, ...rest } = this.#top;
    const usage = this.#usage === undefined ? {} : { usage: this.#usage };
    return { id, object: this.#object, created, model, choices, ...usage, ...rest };
  }

  /** Returns the answer of this number, and begins it if necessary. */
  protected answer(index: number): Answer {
    let answer = this.#answers.get(index);
    if (answer === undefined) this.#answers.set(index, (answer = this.begin()));
    return answer;
  }
}
