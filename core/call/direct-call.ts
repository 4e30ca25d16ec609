import { randomUUID } from 'node:crypto';
import { Exchange } from './exchange.ts';
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
    if (format === undefined || codec === undefined) throw new Error(`No format "${name}" has chats.`);
    const exchange = new Exchange(`req_${randomUUID().replaceAll('-', '')}`, 'chat', format, codec, {
      method: 'POST',
      path: format.routes.find(({ operation }) => operation === 'chat')?.path ?? '/',
      query: new URLSearchParams(),
      headers: { 'content-type': 'application/json' },
      params: {},
      ip: '127.0.0.1',
      bytes: Buffer.alloc(0),
      body: undefined,
    });
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
