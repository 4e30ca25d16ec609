import { GatewayError, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { SocketRequest, SocketRoute, WireFrame } from '../../sdk/format.ts';
import { invalid } from '../_shared/check.ts';
import { errorReply } from '../_openai/errors.ts';

/** Ids of lanes come back in every message: longer ones would multiply. */
const longestLane = 256;

/** The same calls as `POST /v1/responses`, over a WebSocket that lives on between them. */
export const responsesSocket: SocketRoute = {
  path: '/v1/responses',
  operation: 'chat',
  // Browsers hide their key in a second subprotocol, and need one that is selected.
  protocols: ['realtime'],
  read(message) {
    let lane = '';
    try {
      lane = laneOf(message);
      return readMessage(message, lane);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { type: 'answer', message: errorMessage(error, lane) };
    }
  },
  write(data, lane) {
    if (data === '[DONE]') return undefined;
    const end = lane === '' ? -1 : data.lastIndexOf('}');
    return end < 0 ? data : `${data.slice(0, end)},"stream_id":${JSON.stringify(lane)}}`;
  },
  failure(error, lane, frames) {
    return frames.length === 0
      ? [errorMessage(error, lane)]
      : frames.flatMap((frame) => failureFrame(frame, error, lane));
  },
};

function readMessage(message: JsonObject, lane: string): SocketRequest {
  switch (message.type) {
    case 'response.create':
      return { type: 'call', lane, body: requestBody(message) };
    case 'response.cancel':
      return { type: 'cancel', lane };
    case 'response.steer':
      return { type: 'answer', message: steeringFailed(message, lane) };
    case 'response.inject':
      throw invalid(
        'type',
        'A running response does not accept further input. Wait for its end, and send the input with the next response.create.',
      );
    case undefined:
      throw missingValue('type');
    default:
      throw wrongValue('type', 'response.create or response.cancel');
  }
}

function laneOf({ stream_id: lane }: JsonObject): string {
  if (lane === undefined || lane === null) return '';
  if (typeof lane !== 'string') throw wrongType('stream_id', 'a string');
  if (lane.length > longestLane)
    throw wrongValue('stream_id', `a string of at most ${longestLane} characters`);
  return lane;
}

/** Returns the body that `POST /v1/responses` would have had. Fields stand at the top, as is official, or under `response`. */
function requestBody(message: JsonObject): JsonObject {
  const { type: _type, event_id: _event, stream_id: _lane, response, ...top } = message;
  if (response !== undefined && response !== null && !isObject(response))
    throw wrongType('response', 'an object');
  const { stream: _stream, background: _background, generate, ...fields } = { ...top, ...response };
  if (generate !== undefined && generate !== null && typeof generate !== 'boolean')
    throw wrongType('generate', 'a boolean');
  const prepares = generate === false || prewarms(fields);
  return { ...fields, ...(prepares ? { generate: false } : {}), stream: true };
}

/** Returns true for the official option to warm up the prompt cache. */
function prewarms({ prompt_cache_options: options }: JsonObject): boolean {
  return isObject(options) && options.prewarm === true;
}

/** Returns an error that is no event of a reply: the envelope of HTTP beside its status. */
function errorMessage(error: GatewayError, lane: string): JsonObject {
  const { status, headers, body } = errorReply(error, '');
  const retryAfter = headers['retry-after'];
  return {
    type: 'error',
    status,
    error: {
      ...(isObject(body.error) ? body.error : {}),
      ...(retryAfter === undefined ? {} : { headers: { 'retry-after': retryAfter } }),
    },
    ...(lane === '' ? {} : { stream_id: lane }),
  };
}

/** Returns an error frame in both forms that clients read: the flat error event of streams, and an object in `error`. */
function failureFrame(frame: WireFrame, error: GatewayError, lane: string): JsonObject[] {
  if ('text' in frame) return [];
  if (frame.json.type === 'error') return [{ ...frame.json, ...errorMessage(error, lane) }];
  return [lane === '' ? frame.json : { ...frame.json, stream_id: lane }];
}

function steeringFailed({ input, previous_response_id: previous }: JsonObject, lane: string): JsonObject {
  return {
    type: 'response.steer.failed',
    sequence_number: 0,
    error: {
      type: 'invalid_request_error',
      code: 'steering_not_supported',
      message:
        'A running response cannot be steered. Wait for its end, and send the input with the next response.create.',
    },
    steer: { input: input ?? [], previous_response_id: previous ?? null },
    ...(lane === '' ? {} : { stream_id: lane }),
  };
}
