import { checkCompletion } from '../_openai/chunks.ts';
import { gathered } from '../_openai/whole.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import { joinLists } from '../_shared/join-lists.ts';
import type { FrameFold, ReplyContext, WholeEncoder, WireFrame } from '../../sdk/format.ts';
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

/** Gathers events into a whole reply. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  return gathered(new TextStreamEncoder(context, true), new TextFold(), own);
}

/** Puts the chunks of one reply together into a whole one. */
class TextFold implements FrameFold {
  readonly #choices = new Map<number, MutableObject>();
  readonly #top: MutableObject = {};
  #usage: JsonObject | undefined;

  frame(frame: WireFrame): void {
    if ('text' in frame) return;
    const { choices, usage, ...top } = frame.json;
    Object.assign(this.#top, top);
    if (isObject(usage)) this.#usage = usage;
    for (const choice of objectsOf(choices)) this.#join(choice);
  }

  end(): JsonObject {
    const choices = [...this.#choices].toSorted(([one], [other]) => one - other).map(([, choice]) => choice);
    const usage = this.#usage === undefined ? {} : { usage: this.#usage };
    const { id, object, created, model, ...rest } = this.#top;
    return { id, object, created, model, choices, ...usage, ...rest };
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
