import { Counter, Registry } from 'prom-client';
import type { CountedSeries } from 'sluice';

/** Returns the counters of all plugins as they stand now. Made for each scrape, because plugins are set up in any order. */
export function countedByPlugins(counters: readonly CountedSeries[]): Registry {
  const registry = new Registry();
  for (const { name, help, labelNames, series } of counters) {
    const counter = new Counter({ name, help, labelNames: [...labelNames], registers: [registry] });
    for (const { labels, value } of series) counter.inc(labels, value);
  }
  return registry;
}
