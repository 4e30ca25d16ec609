/** A row by which owners of keys are charged, in place of what the provider costs. */
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { PriceRow } from '../../settings/prices.ts';
import { microDollarsOf } from './amounts.ts';
import { Row, type Amount, type CallBounds } from './row.ts';
import type { Services } from './services.ts';

/** One request of a call, and the price row of the provider's cost; absent where the model has no price. */
export interface PricedUsage {
  readonly usage: Usage;
  readonly price?: JsonObject | undefined;
}

/** A price row of a team or organisation. Services that it does not name are charged what the provider costs. */
export class OwnRow {
  readonly #row: Row;
  readonly #services: Services;

  constructor(model: string, row: PriceRow) {
    this.#row = new Row(model, row);
    this.#services = row.services ?? {};
  }

  /** Returns the charge of a usage without that of services, and that of the services, in micro-dollars. */
  charge({ usage, price }: PricedUsage): readonly [tokens: number, services: number] {
    const given = price?.['services'];
    const provided = typeof given === 'object' && given !== null ? (given as Services) : {};
    let services = 0;
    for (const [name, uses] of Object.entries(usage.units?.services ?? {}))
      services += microDollarsOf(uses, this.#priceOf(name) ?? provided[name] ?? 0);
    return [this.#row.cost(usage).microDollars, services];
  }

  /** Returns the most that calls may be charged, in micro-dollars. `others`: the cost of services that have no price in the row. */
  most(amount: Amount, bounds: CallBounds, others: (services: Services) => number): number {
    const { services = {} } = amount[2];
    let own = 0;
    for (const [name, uses] of Object.entries(services)) {
      const price = this.#priceOf(name);
      if (price !== undefined) own += microDollarsOf(uses, price);
    }
    const rest = this.unnamed(services);
    return this.#row.most(amount, bounds) + own + (Object.keys(rest).length === 0 ? 0 : others(rest));
  }

  /** Returns the services that have no price in the row. */
  unnamed(services: Services): Services {
    return Object.fromEntries(Object.entries(services).filter(([name]) => this.#priceOf(name) === undefined));
  }

  #priceOf(service: string): number | undefined {
    return Object.hasOwn(this.#services, service) ? this.#services[service] : undefined;
  }
}
