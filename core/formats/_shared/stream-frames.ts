import { GatewayError } from '../../errors.ts';
import { parseObject, type JsonObject } from '../../model/json.ts';
import { throwIfError } from './one-shot.ts';

/** The JSON of a frame of a provider's stream. Throws GatewayError when it is none, or tells an error. */
export function frameBody(data: string): JsonObject {
  const body = parseObject(data);
  if (body === undefined) {
    throw new GatewayError('upstream_error', 'The upstream sent a frame that is no JSON.', {
      origin: 'upstream',
    });
  }
  throwIfError(body);
  return body;
}

/** A provider's stream that ended before its answer did. */
export function cutShort(): GatewayError {
  return new GatewayError(
    'upstream_cut',
    'The upstream closed the connection before the answer was complete.',
    { origin: 'upstream' },
  );
}
