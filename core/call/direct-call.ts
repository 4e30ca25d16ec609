import { ownExchange, ownPost } from './own-exchange.ts';
import { firstView } from './view.ts';
import type { Next } from '../sdk/define.ts';
import type { Format } from '../sdk/format.ts';
import { addressed } from '../routing/target.ts';
import type { DirectCalls } from '../sdk/direct-call.ts';

/** Binds direct calls to the gateway's formats and to its translate stage. */
export function createDirectCalls(
  formatNamed: (name: string) => Format | undefined,
  translate: Next,
): DirectCalls {
  return (name, body, target) => {
    const format = formatNamed(name);
    const codec = format?.codecs.chat;
    if (format === undefined || codec === undefined) throw new Error(`No format "${name}" supports chat.`);
    const exchange = ownExchange('chat', format, codec, ownPost(format, 'chat'));
    exchange.understand(Buffer.from(JSON.stringify(body)), body);
    exchange.decoded = codec.validate(body, {});
    const call = firstView(exchange).with({ decoded: true });
    return {
      call,
      send: () => translate(addressed(call, target)),
      end: () => exchange.end(),
    };
  };
}
