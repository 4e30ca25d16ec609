import { ownExchange } from './own-exchange.ts';
import { firstView } from './view.ts';
import type { Format } from '../sdk/format.ts';
import type { ProviderCalls } from '../sdk/direct-call.ts';

/** Makes calls that nobody outside has made, for what a provider keeps. */
export function createProviderCalls(formatNamed: (name: string) => Format | undefined): ProviderCalls {
  return (name, target) => {
    const format = formatNamed(name);
    const codec = format?.codecs.chat;
    if (format === undefined || codec === undefined) throw new Error(`No format "${name}" supports chat.`);
    const exchange = ownExchange('state', format, codec);
    exchange.model = target.model;
    return { call: firstView(exchange).with({ target }), end: () => exchange.end() };
  };
}
