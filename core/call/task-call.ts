import { ownExchange } from './own-exchange.ts';
import { firstView } from './view.ts';
import type { Next } from '../sdk/define.ts';
import type { Format } from '../sdk/format.ts';
import type { TaskCalls } from '../sdk/direct-call.ts';
import { addressed, codecFor } from '../routing/target.ts';

/** Binds task calls to the gateway's formats and to its translate stage. */
export function createTaskCalls(
  formatNamed: (name: string) => Format | undefined,
  translate: Next,
): TaskCalls {
  return (request, target) => {
    const { operation } = request;
    const codec = codecFor(request.format, operation, target.channel, formatNamed);
    // The call is invisible to clients, so its format does not matter. A channel's own codecs belong to no public format.
    const format = formatNamed(request.format) ?? formatNamed('videos');
    if (format === undefined || codec === undefined)
      throw new Error(`The format "${request.format}" has no ${operation}.`);
    const exchange = ownExchange(operation, format, codec);
    exchange.model = request.model;
    exchange.decoded = request;
    const call = firstView(exchange).with({ decoded: true });
    return {
      call,
      send: () => translate(addressed(call, target)),
      end: () => exchange.end(),
    };
  };
}
