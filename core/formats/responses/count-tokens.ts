import { GatewayError } from '../../sdk/errors.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { upstreamError } from '../_shared/upstream-error.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { formatName } from './wire.ts';

const object = 'response.input_tokens';

/** The count of a provider, as a `result` event. Throws GatewayError (origin upstream) for an error or a body without a count. */
export function decodeCount(body: JsonObject): readonly GatewayEvent[] {
  if (isObject(body.error)) throw upstreamError(200, JSON.stringify(body));
  const { input_tokens: tokens, object: _, ...rest } = body;
  if (typeof tokens !== 'number')
    throw new GatewayError('upstream_error', 'The upstream gave no count.', { origin: 'upstream' });
  const details = Object.keys(rest).length === 0 ? {} : { extra: { [formatName]: rest } };
  return [{ type: 'result', value: { tokens, ...details } }];
}

/** Writes a count. */
export function encodeCount(context: ReplyContext): WholeEncoder {
  const reply: MutableObject = { object, input_tokens: context.inputEstimate };
  return {
    event(event) {
      if (event.type !== 'result' || !isObject(event.value)) return;
      const { tokens, extra } = event.value;
      if (typeof tokens === 'number') reply.input_tokens = tokens;
      if (isObject(extra) && isObject(extra[formatName])) Object.assign(reply, extra[formatName]);
    },
    end: () => reply,
  };
}
