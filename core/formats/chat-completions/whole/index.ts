/** Whole chat completions: decodes a provider's reply by way of stream chunks, and encodes a client's reply from events. */
import { gathered, marked, unfolded } from '../../_openai/whole.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import type { ReplyContext, WholeEncoder } from '../../../sdk/format.ts';
import { ChatStreamDecoder } from '../stream-in/index.ts';
import { ChatStreamEncoder } from '../stream-out/index.ts';
import { ChatFold } from './fold.ts';
import { formatName, own } from '../wire.ts';
import { objectsOf } from '../../_shared/fields.ts';

/** Splits a whole reply into stream chunks: for each choice one with its message and one with its finish reason, then one with the usage. */
export function unfold(body: JsonObject): JsonObject[] {
  const { choices, usage, object: _, ...top } = body;
  const list = objectsOf(choices);
  const chunks: JsonObject[] = [];
  const chunk = (more: JsonObject): number =>
    chunks.push({ ...top, object: 'chat.completion.chunk', ...more });
  list.forEach((choice, position) => {
    const { message, finish_reason: finish, logprobs, index, ...rest } = choice;
    const number = typeof index === 'number' ? index : position;
    const delta = isObject(message) ? message : {};
    const beside = logprobs === undefined ? rest : { ...rest, logprobs };
    chunk({ choices: [{ ...beside, index: number, delta, finish_reason: null }] });
    const again = logprobs === null ? beside : rest;
    chunk({
      choices: [
        {
          ...again,
          index: number,
          delta: {},
          finish_reason: typeof finish === 'string' && finish !== '' ? finish : 'stop',
        },
      ],
    });
  });
  if (isObject(usage)) chunk({ choices: [], usage });
  return chunks;
}

/** Returns the events of a provider's whole reply. Throws the error that the body holds, if it is one. */
export function decodeWhole(body: JsonObject, traits: ModelTraits): readonly GatewayEvent[] {
  const choices = choicesByNumber(body);
  const events = unfolded(formatName, body, unfold(body), new ChatStreamDecoder(traits));
  return events.map((event) => {
    const choice = event.type === 'finish' ? choices.get(event.choice) : undefined;
    if (event.type !== 'finish' || choice === undefined) return event;
    // The answer's empty fields are kept, so that the same reply can be encoded again.
    const $message = isObject(choice.message) ? empties(choice.message) : {};
    const $choiceEmpty = choice.logprobs === null ? { logprobs: null } : {};
    return marked(event, formatName, { $message, $choiceEmpty });
  });
}

/** Returns the first choice of each index. */
function choicesByNumber({ choices }: JsonObject): ReadonlyMap<number, JsonObject> {
  const numbered = objectsOf(choices).map(
    (choice, position) => [typeof choice.index === 'number' ? choice.index : position, choice] as const,
  );
  return new Map(numbered.toReversed());
}

function empties(message: JsonObject): JsonObject {
  const found: MutableObject = {};
  for (const key in message) {
    const value = message[key];
    if (value === null || value === '' || (Array.isArray(value) && value.length === 0)) found[key] = value;
  }
  return found;
}

/** Gathers events into a whole reply. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  const fold = new ChatFold();
  return gathered(new ChatStreamEncoder(context, true), fold, own, ({ choice: index, extra }) => {
    const { $message: message, $choiceEmpty } = own(extra);
    if (!isObject(message)) return;
    fold.shape(index, { message, choice: isObject($choiceEmpty) ? $choiceEmpty : {} });
  });
}
