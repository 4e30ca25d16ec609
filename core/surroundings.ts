import type { Settings } from './config.ts';
import { createHealth, type Health } from './routing/health.ts';
import type { Log } from './log.ts';
import type { ApiKeys } from './state/api-keys.ts';
import { openLedger, startBookkeeper, type Bookkeeper, type Ledger } from './state/ledger.ts';
import { openRates, type Rates } from './state/rates.ts';
import type { Stores } from './state/stores.ts';
import { openUsageLog, type UsageLog } from './state/usage-log.ts';

/** What lives longer than one configuration. */
export interface Surroundings {
  readonly log: Log;
  readonly stores: Stores;
  readonly apiKeys: ApiKeys;
  readonly ledger: Ledger;
  readonly bookkeeper: Bookkeeper;
  readonly usageLog: UsageLog;
  readonly rates: Rates;
  readonly health: Health;
}

/** Opens all that stands on the stores. */
export function openSurroundings(
  log: Log,
  stores: Stores,
  apiKeys: ApiKeys,
  { shared, health }: Pick<Settings, 'shared' | 'health'>,
): Surroundings {
  const ledger = openLedger(stores);
  return {
    log,
    stores,
    apiKeys,
    ledger,
    bookkeeper: startBookkeeper(ledger, (error) => log.error({ error }, 'calls could not be charged')),
    usageLog: openUsageLog(stores),
    rates: openRates(shared, (error) => {
      if (error === undefined) log.info({}, 'the shared store answers again');
      else log.error({ error, whenDown: shared.whenDown }, 'the shared store does not answer');
    }),
    health: createHealth(health),
  };
}

/** Closes what {@link openSurroundings} opened, in order; the stores stay open. What waits to be charged is charged first. */
export async function closeSurroundings({ rates, health, bookkeeper, apiKeys }: Surroundings): Promise<void> {
  await health.close();
  await rates.close();
  await bookkeeper.close();
  await apiKeys.stop();
}
