/**
 * Whole Responses replies: decodes a provider's reply by way of stream events, and takes a client's reply from the last event of a stream.
 */
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { upstreamError, unusableResponse } from '../_shared/upstream-error/index.ts';
import type { FrameFold, WireFrame } from '../../sdk/format.ts';
import { ResponsesStreamDecoder } from './stream-in/index.ts';
import { unfold } from './stream-in/response.ts';

/** Decodes a provider's whole reply. Throws the error that the body holds, and an error for an answer that is not finished. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  const { error, status } = body;
  const broken = isObject(error) || (typeof error === 'string' && error !== '');
  if (broken || status === 'failed' || status === 'cancelled') throw upstreamError(200, JSON.stringify(body));
  if (!Array.isArray(body.output)) {
    const message = ['message', 'msg', 'detail', 'code', 'errors'].some((key) => key in body);
    throw message ? upstreamError(200, JSON.stringify(body)) : unusableResponse('sent no answer');
  }
  if (status === 'queued' || status === 'in_progress') throw unusableResponse('sent an incomplete response');
  const decoder = new ResponsesStreamDecoder();
  const events = unfold(body).flatMap((frame) => decoder.json(frame));
  return [...events, ...decoder.end()];
}

/** Puts the frames of one reply together: the last snapshot of the response holds everything. */
export class ResponsesFold implements FrameFold {
  #response: JsonObject = {};

  frame(frame: WireFrame): void {
    if ('json' in frame && isObject(frame.json.response)) this.#response = frame.json.response;
  }

  end(): JsonObject {
    return this.#response;
  }
}
