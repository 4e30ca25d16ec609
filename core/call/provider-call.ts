import { randomUUID } from 'node:crypto';
import { Exchange } from './exchange.ts';
import { firstView } from './view.ts';
import type { Format } from '../sdk/format.ts';
import type { ProviderCalls } from '../sdk/direct-call.ts';

/** Makes calls that nobody outside has made, for what a provider keeps. */
export function createProviderCalls(formatNamed: (name: string) => Format | undefined): ProviderCalls {
  return (name, target) => {
    const format = formatNamed(name);
    const codec = format?.codecs.chat;
    if (format === undefined || codec === undefined) throw new Error(`No format "${name}" has chats.`);
    const exchange = new Exchange(`req_${randomUUID().replaceAll('-', '')}`, 'state', format, codec, {
      method: 'GET',
      path: '/',
      query: new URLSearchParams(),
      headers: {},
      params: {},
      ip: '127.0.0.1',
      bytes: Buffer.alloc(0),
      body: {},
    });
    exchange.model = target.model;
    return { call: firstView(exchange).with({ target }), end: () => exchange.end() };
  };
}
