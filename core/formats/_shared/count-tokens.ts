/** Decodes and encodes replies of token-counting endpoints, for all formats that have one. */
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { WholeEncoder } from '../../sdk/format.ts';
import { throwIfError, unusableResponse } from './upstream-error/index.ts';

/**
 * Returns a provider's token count as a `result` event. Other members of the body are kept for clients of the same format. `field`: name of
 * the member with the count. `object`: value of the body's member `object`, if it has one. Throws GatewayError (origin upstream) for an
 * error or a body without a count.
 */
export function decodeCount(body: JsonObject, format: string, field: string): readonly GatewayEvent[] {
  throwIfError(body);
  const { [field]: count, object: _, ...details } = body;
  const tokens = Number(count ?? Number.NaN);
  if (!Number.isFinite(tokens)) throw unusableResponse('gave no count');
  const extra = Object.keys(details).length === 0 ? {} : { extra: { [format]: details } };
  return [{ type: 'result', value: { tokens, ...extra } }];
}

/** Returns `empty` with the count. */
export function countEncoder(empty: JsonObject, format: string, field: string): WholeEncoder {
  let reply = empty;
  return {
    event(event) {
      if (event.type !== 'result' || !isObject(event.value)) return;
      const { tokens, extra } = event.value;
      const details = isObject(extra) ? extra[format] : undefined;
      reply = {
        ...empty,
        ...(typeof tokens === 'number' ? { [field]: tokens } : {}),
        ...(isObject(details) ? details : {}),
      };
    },
    end: () => reply,
  };
}
