/** Prices of services that providers run for models, such as web search: from the config, else from the channels. */
import type { Units } from '../../model/usage.ts';
import type { PricedChannels, ServedBy } from './channels.ts';
import { microDollarsOf } from './amounts.ts';

/** Uses of services, by their names. */
export type Services = NonNullable<Units['services']>;

/** Returns the config's prices of the services of a model, in dollars per use. */
export type ConfiguredServices = (model: string) => Readonly<Record<string, number>> | undefined;

/** Price table of services. Prices of the config come before those of channels. */
export class ServiceTable {
  readonly #configured: ConfiguredServices;
  readonly #catalog: PricedChannels | undefined;

  constructor(configured: ConfiguredServices, catalog: PricedChannels | undefined) {
    this.#configured = configured;
    this.#catalog = catalog;
  }

  /** Returns the cost of uses in micro-dollars, and the known prices in dollars. */
  cost(
    model: string,
    services: Services,
    servedBy?: ServedBy,
  ): { readonly microDollars: number; readonly prices: Services } {
    const prices: Record<string, number> = {};
    let microDollars = 0;
    for (const [service, uses] of Object.entries(services)) {
      const price = uses > 0 ? this.#priceOf(model, service, servedBy) : undefined;
      if (price === undefined) continue;
      prices[service] = price;
      microDollars += microDollarsOf(uses, price);
    }
    return { microDollars, prices };
  }

  /** Returns the first of the services that has no price at a channel of the model. */
  unpriced(model: string, services: Services): string | undefined {
    return Object.keys(services).find((service) => this.#priceOf(model, service) === undefined);
  }

  /** Returns the price at the channel that served a call, else the highest of all channels of the model, each of which must have one. */
  #priceOf(model: string, service: string, servedBy?: ServedBy): number | undefined {
    const configured = memberOf(this.#configured(model), service);
    if (configured !== undefined) return configured;
    if (servedBy !== undefined) {
      const channel = this.#catalog?.channels.find(({ id }) => id === servedBy.channel);
      return memberOf(channel?.servicePrices?.(servedBy.model), service);
    }
    const prices = (this.#catalog?.candidates(model) ?? []).map(({ channel, targets: [target] }) =>
      memberOf(target && channel.servicePrices?.(target.model), service),
    );
    const known = prices.filter((price) => price !== undefined);
    return known.length === 0 || known.length < prices.length ? undefined : Math.max(...known);
  }
}

function memberOf(prices: Readonly<Record<string, number>> | undefined, service: string): number | undefined {
  return prices !== undefined && Object.hasOwn(prices, service) ? prices[service] : undefined;
}
