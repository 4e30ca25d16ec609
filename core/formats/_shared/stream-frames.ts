import { isObject, parseObject, type JsonObject } from '../../model/json.ts';
import type { Frame } from '../../sdk/format.ts';
import { throwIfError, unusable } from './upstream-error/index.ts';

/** What an event is called that has no name. */
const unnamed = 'message';

/** The JSON of a frame of a provider's stream, with its type. Throws GatewayError when it is none, or tells an error. */
export function frameBody(frame: Frame): JsonObject {
  const body = parseObject(frame.data);
  if (body === undefined) throw unusable('sent a frame that is no JSON');
  throwIfError(body);
  return typed(body, frame);
}

/** The body of a frame of a format whose frames have a type: in the body, or as the event's name alone. */
export function typed(body: JsonObject, { event }: Frame): JsonObject {
  return body.type !== undefined || event === undefined || event === unnamed
    ? body
    : { ...body, type: event };
}

/** The type of such a frame: the event's name, or what the body says where there is none. Undefined when neither tells. */
export function typeOf({ data, event }: Frame): string | undefined {
  if (event !== undefined && event !== unnamed) return event;
  const type = parseObject(data)?.type;
  return typeof type === 'string' ? type : undefined;
}

/** True for a frame by which a stream of a completion is complete: one that says why an answer ended, or the last. */
export function endsCompletion({ data }: Frame): boolean {
  if (data.trim() === '[DONE]') return true;
  const choices = parseObject(data)?.choices;
  return (
    Array.isArray(choices) &&
    choices.some(
      (choice) => isObject(choice) && typeof choice.finish_reason === 'string' && choice.finish_reason !== '',
    )
  );
}
