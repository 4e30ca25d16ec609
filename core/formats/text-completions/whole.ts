/** Whole text completions: decodes a provider's reply by way of stream chunks, and encodes a client's reply from events. */
import { CompletionFold, gathered, unfolded } from '../_openai/whole.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import { joinLists } from '../_shared/join-lists.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { TextStreamDecoder } from './stream-in.ts';
import { TextStreamEncoder } from './stream-out.ts';
import { formatName, own } from './wire.ts';
import { objectsOf, textOf } from '../_shared/fields.ts';

/** Returns the events of a provider's whole reply. Throws the error that the body holds, if it is one. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  const { error: _, choices, usage, ...top } = body;
  const chunks: JsonObject[] = objectsOf(choices).map((choice, position) => ({
    ...top,
    choices: [ended(choice, position)],
  }));
  if (isObject(usage)) chunks.push({ ...top, choices: [], usage });
  return unfolded(formatName, body, chunks, new TextStreamDecoder());
}

function ended(choice: JsonObject, position: number): JsonObject {
  const { finish_reason: finish, index } = choice;
  return {
    ...choice,
    index: typeof index === 'number' ? index : position,
    finish_reason: typeof finish === 'string' && finish !== '' ? finish : 'stop',
  };
}

/** Gathers events into a whole reply. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  return gathered(new TextStreamEncoder(context, true), new TextFold('text_completion'), own);
}

/** Puts the chunks of one reply together into a whole one. */
class TextFold extends CompletionFold<MutableObject> {
  protected begin(): MutableObject {
    return { text: '', index: 0, logprobs: null };
  }

  protected add(answer: MutableObject, piece: JsonObject): void {
    const { text, logprobs, finish_reason: finish, ...fields } = piece;
    Object.assign(answer, fields, { text: `${String(answer.text)}${textOf(text)}` });
    if (isObject(logprobs)) answer.logprobs = joinLists(answer.logprobs, logprobs);
    answer.finish_reason = finish ?? answer.finish_reason ?? null;
  }

  protected whole(index: number, answer: MutableObject): JsonObject {
    return { ...answer, index };
  }
}
