/** Parses the JSON of frames in a provider's stream, and recognizes their type and the end of a completion. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { Frame } from '../../sdk/format.ts';
import { throwIfError, unusableResponse } from './upstream-error/index.ts';

/** Name of an event that has none, by the specification of Server-Sent Events. */
const unnamed = 'message';

/**
 * Parses the JSON of a frame of a provider's stream; `type` is the event's name if the JSON has no type. Throws GatewayError if it is not a
 * JSON object, or is an error.
 *
 * @example
 * frame(frame) {
 *   const { type, text } = readFrame(frame);
 *   return type === 'text' ? [{ type: 'text-delta', block: 0, choice: 0, text: String(text) }] : [];
 * }
 */
export function readFrame(frame: Frame): JsonObject {
  const body = parseObject(frame.data);
  if (body === undefined) throw unusableResponse('sent a frame that is not JSON');
  throwIfError(body);
  return typed(body, frame);
}

/** Returns the body of a frame of a format whose frames have a type: in the body, or as the event's name alone. */
export function typed(body: JsonObject, { event }: Frame): JsonObject {
  return body.type !== undefined || event === undefined || event === unnamed
    ? body
    : { ...body, type: event };
}

/**
 * Returns the type of a frame: the event's name, or the `type` of its JSON. Undefined if there is neither.
 *
 * @example
 * endsStream: (frame) => frameType(frame) === 'done',
 */
export function frameType({ data, event }: Frame): string | undefined {
  if (event !== undefined && event !== unnamed) return event;
  const type = parseObject(data)?.type;
  return typeof type === 'string' ? type : undefined;
}

/** Returns true for a frame that completes the stream of a completion: one with a finish reason, or the last one. */
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
