import { checkCompletion } from '../_openai/chunks.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { joinLists } from '../_shared/join-lists.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { ReplyContext, WholeEncoder, WireFrame } from '../../sdk/format.ts';
import { TextStreamDecoder } from './stream-in.ts';
import { TextStreamEncoder } from './stream-out.ts';
import { formatName, own } from './wire.ts';
import { objectsOf } from '../_shared/fields.ts';

/** The events of a provider's whole reply. Throws the error that the body holds, if it is one. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  checkCompletion(body);
  const { error: _, choices, usage, ...top } = body;
  const list = objectsOf(choices);
  const decoder = new TextStreamDecoder();
  const events = list.flatMap((choice, position) =>
    decoder.chunk({ ...top, choices: [ended(choice, position)] }),
  );
  if (isObject(usage)) for (const event of decoder.chunk({ ...top, choices: [], usage })) events.push(event);
  for (const event of decoder.end()) events.push(event);
  return isObject(usage) ? events : events.map(withoutUsage);
}

function ended(choice: JsonObject, position: number): JsonObject {
  const { finish_reason: finish, index } = choice;
  return {
    ...choice,
    index: typeof index === 'number' ? index : position,
    finish_reason: typeof finish === 'string' && finish !== '' ? finish : 'stop',
  };
}

/** Says on the head that there was no usage, so that the same reply can be made again. */
function withoutUsage(event: GatewayEvent): GatewayEvent {
  return event.type === 'head'
    ? { ...event, extra: { ...event.extra, [formatName]: { ...own(event.extra), $usage: false } } }
    : event;
}

/** Gathers events into a whole reply: a fold over what the stream encoder writes. */
export class TextWholeEncoder implements WholeEncoder {
  readonly #stream: TextStreamEncoder;
  readonly #choices = new Map<number, MutableObject>();
  #top: JsonObject = {};
  #usage: JsonObject | undefined;
  #tellsUsage = true;

  constructor(context: ReplyContext) {
    this.#stream = new TextStreamEncoder(context, true);
  }

  event(event: GatewayEvent): void {
    if (event.type === 'head' && own(event.extra).$usage === false) this.#tellsUsage = false;
    if (event.type === 'usage') this.#tellsUsage = true;
    this.#add(this.#stream.event(event));
  }

  end(): JsonObject {
    this.#add(this.#stream.end());
    const choices = [...this.#choices].toSorted(([one], [other]) => one - other).map(([, choice]) => choice);
    const { id, object, created, model, ...rest } = this.#top;
    return {
      id,
      object,
      created,
      model,
      choices,
      ...(this.#tellsUsage && this.#usage !== undefined ? { usage: this.#usage } : {}),
      ...rest,
    };
  }

  #add(frames: readonly WireFrame[]): void {
    for (const frame of frames) {
      if ('text' in frame) continue;
      const { choices, usage, ...top } = frame.json;
      this.#top = { ...this.#top, ...top };
      if (isObject(usage)) this.#usage = usage;
      if (!Array.isArray(choices)) continue;
      for (const choice of choices as readonly JsonValue[]) if (isObject(choice)) this.#join(choice);
    }
  }

  #join(piece: JsonObject): void {
    const index = typeof piece.index === 'number' ? piece.index : 0;
    const choice = this.#choices.get(index) ?? { text: '', index, logprobs: null };
    this.#choices.set(index, choice);
    const { text, logprobs, finish_reason: finish, ...fields } = piece;
    Object.assign(choice, fields, { text: `${String(choice.text)}${typeof text === 'string' ? text : ''}` });
    if (isObject(logprobs)) choice.logprobs = joinLists(choice.logprobs, logprobs);
    choice.finish_reason = finish ?? choice.finish_reason ?? null;
  }
}
