import type { DetachedCalls } from './detached.ts';
import { ownExchange, ownPost } from './own-exchange.ts';
import { firstView } from './view.ts';
import { caller } from '../sdk/caller.ts';
import type { Call } from '../sdk/call.ts';
import type { Next } from '../sdk/define.ts';
import type { Format } from '../sdk/format.ts';
import type { Subcalls } from '../sdk/direct-call.ts';

/**
 * Binds the calls that plugins make on behalf of others to the gateway's formats, and to the part of the pipeline that they meet.
 * `detached` counts those that outlive their parents. `prepare` sees each of them before it is sent.
 */
export function createSubcalls(
  formats: readonly Format[],
  pipeline: Next,
  detached: DetachedCalls,
  prepare: (own: Call, parent: Call) => void = () => {},
): Subcalls {
  return (parent, { operation, format: name, body, chargeTo = 'caller', outlivesParent = false }) => {
    const format = formats.find((one) => one.name === name);
    const codec = format?.codecs[operation as keyof Format['codecs']];
    if (format === undefined || codec === undefined) {
      const capable = formats.filter(({ codecs }) => operation in codecs).map((one) => `"${one.name}"`);
      throw new Error(
        `The format "${name}" has no operation "${operation}". Use one of ${capable.join(', ')}.`,
      );
    }
    const { ip } = parent.wire;
    const exchange = ownExchange(operation, format, codec, { ...ownPost(format, operation), ip });
    exchange.parent = parent;
    exchange.understand(Buffer.from(JSON.stringify(body)), body);
    exchange.decoded = codec.validate(body, {});
    const key = chargeTo === 'caller' ? parent.get(caller) : undefined;
    if (key !== undefined) exchange.values.set(caller, key);
    const call = firstView(exchange).with({ decoded: true });
    prepare(call, parent);
    if (outlivesParent) detached.add(call);
    const forget = outlivesParent ? undefined : parent.onEnd(() => exchange.end());
    return {
      call,
      send: () => pipeline(call),
      end() {
        forget?.();
        exchange.end();
      },
    };
  };
}
