/** Prices of services that providers run for models, such as web search. */
import { readFileSync } from 'node:fs';
import { matchesModel } from '../sdk/allowed-models.ts';

/** Dollars for each use of a service, by its name. */
export type ServicePrices = Readonly<Record<string, number>>;

/** Prices of the services that the providers of channel kinds run for models. */
interface ServiceList {
  /** Source of the figures. */
  readonly source: string;
  /** The day for which they hold, `YYYY-MM-DD`. */
  readonly date: string;
  /** Rows by channel kind. The first row that matches the provider's name of a model applies. */
  readonly services: Readonly<
    Record<string, readonly { readonly models: readonly string[]; readonly prices: ServicePrices }[]>
  >;
}

let read: ServiceList | undefined;

/** Returns the list that comes with Sluice. Read on first use. */
export function shippedServices(): ServiceList {
  read ??= JSON.parse(readFileSync(new URL('services.json', import.meta.url), 'utf8')) as ServiceList;
  return read;
}

/** Returns what the services cost that a kind of channel runs for a model; undefined where that is not known. */
export function servicePricesOf(kind: string, upstreamModel: string): ServicePrices | undefined {
  const { services } = shippedServices();
  const rows = Object.hasOwn(services, kind) ? services[kind] : undefined;
  return rows?.find(({ models }) => matchesModel(models, upstreamModel))?.prices;
}
