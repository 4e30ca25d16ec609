import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { FrameFold, StreamEncoder, WholeEncoder } from '../../sdk/format.ts';
import type { Extra } from '../../model/extra.ts';
import { folded } from '../_shared/folded.ts';

/**
 * Gathers events into a whole completion: the chunks that a stream would have had, folded. A provider of the format that told no usage
 * (`$usage: false` on the head) is given back without any. `finished` is told of the end of each answer.
 */
export function gathered(
  encoder: StreamEncoder,
  fold: FrameFold,
  own: (extra: Extra | undefined) => JsonObject,
  finished: (event: Extract<GatewayEvent, { readonly type: 'finish' }>) => void = () => {},
): WholeEncoder {
  const whole = folded(encoder, fold);
  let tellsUsage = true;
  return {
    event(event) {
      if (event.type === 'head' && own(event.extra).$usage === false) tellsUsage = false;
      if (event.type === 'usage') tellsUsage = true;
      whole.event(event);
      if (event.type === 'finish') finished(event);
    },
    end() {
      const { usage, ...reply } = whole.end();
      return tellsUsage && usage !== undefined ? { ...reply, usage } : reply;
    },
  };
}
