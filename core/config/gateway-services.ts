/** Opens and closes the services that outlive one configuration: ledger, rates, health, users, usage log and overload protection. */
import type { Settings } from '../settings/index.ts';
import type { Log } from '../log.ts';
import { DetachedCalls } from '../call/detached.ts';
import { Overload, processGauges } from '../front/overload.ts';
import { alone, type Processes } from '../state/links/processes.ts';
import { openHealth } from '../routing/health/index.ts';
import { type Health, type HealthChange } from '../sdk/health.ts';
import { TargetLoads } from '../routing/load.ts';
import type { ApiKeys } from '../state/api-keys/index.ts';
import { openLedger } from '../money/ledger/open.ts';
import { withOwners } from '../money/ledger/with-owners.ts';
import { startLedgerPruning } from '../money/ledger/pruning.ts';
import { startKeyListReports } from '../state/api-keys/standing.ts';
import { startResponseReports } from '../state/responses/standing.ts';
import { openCredentials, type Credentials } from '../state/users/credentials.ts';
import type { Users } from '../state/users/index.ts';
import { openUsers } from '../state/users/open.ts';
import { Upkeep } from '../state/upkeep.ts';
import type { Operations } from '../sdk/author/operations.ts';
import { openOperations } from './operations.ts';
import { startBookkeeper } from '../money/ledger/bookkeeper.ts';
import { type Bookkeeper, type Ledger } from '../money/ledger/index.ts';
import { openRates } from '../money/rates/open.ts';
import { type Rates, type RatesLine } from '../money/rates/index.ts';
import type { Stores } from '../state/stores.ts';
import { openUsageLog } from '../money/usage-log/open.ts';
import { type UsageLog } from '../money/usage-log/index.ts';
import type { RuntimeConfig } from './runtime-config/index.ts';
import type { HealthLine } from '../routing/health/primary.ts';

/** Services of one process. */
export interface GatewayServices {
  readonly log: Log;
  readonly stores: Stores;
  readonly apiKeys: ApiKeys;
  readonly users: Users;
  readonly credentials: Credentials;
  readonly ledger: Ledger;
  readonly bookkeeper: Bookkeeper;
  readonly usageLog: UsageLog;
  readonly rates: Rates;
  readonly health: Health;
  readonly load: TargetLoads;
  /** Load of this process, and overload protection. */
  readonly overload: Overload;
  readonly processes: Processes;
  readonly detached: DetachedCalls;
  /** State of the data with retention rules. */
  readonly upkeep: Upkeep;
  /** State of the gateway, for plugins. */
  readonly operations: Operations;
  /** Run-time configuration; absent when the gateway is only a trial. */
  readonly runtimeConfig?: RuntimeConfig;
  /** Stops the maintenance tasks. */
  readonly stopUpkeep: () => void;
}

/** Connections between the processes of one gateway for rates and channel health. Absent in a process that is alone. */
export interface ProcessLines {
  readonly rates?: RatesLine;
  readonly health?: HealthLine;
  /** Returns how long a new connection waited for this process, in milliseconds, if that is known. */
  readonly waited?: () => number | undefined;
}

/** Opens the services. */
export function openGatewayServices(
  log: Log,
  stores: Stores,
  apiKeys: ApiKeys,
  {
    shared,
    health,
    overload,
    limits,
    members,
  }: Pick<Settings, 'shared' | 'health' | 'overload' | 'limits' | 'members'>,
  processes: Processes & ProcessLines = alone(),
): GatewayServices {
  const ledger = withOwners(openLedger(stores), (keyId) => apiKeys.effectiveById(keyId));
  const upkeep = new Upkeep();
  const stopResponseReports = startResponseReports(stores.database, upkeep);
  const stopKeyListReports = startKeyListReports(stores.database, upkeep);
  const stopPruning = startLedgerPruning(stores.database, upkeep, (error) =>
    log.error({ error }, 'old spending records could not be removed'),
  );
  const ownHealth = openHealth(health, shared, processes.workers > 1 ? processes.health : undefined);
  ownHealth.follow((change) => logChange(log, change));
  const users = openUsers({
    stores,
    owners: apiKeys.owners,
    defaults: members.defaults,
    report: (error) => log.error({ error }, 'a user cannot be read'),
  });
  const rates = openRates(
    shared,
    (error) => {
      if (error === undefined) log.info({}, 'the shared store responds again');
      else log.error({ error, whenDown: shared.whenDown }, 'the shared store does not respond');
    },
    {},
    processes.rates,
  );
  const bookkeeper = startBookkeeper(ledger, (error) =>
    log.error({ error }, 'settlements failed: calls could not be charged'),
  );
  return {
    log,
    stores,
    apiKeys,
    users,
    credentials: openCredentials(users, stores),
    ledger,
    bookkeeper,
    usageLog: openUsageLog(stores, { inThread: true }),
    rates,
    health: ownHealth,
    load: new TargetLoads(),
    overload: new Overload(overload, limits.body, log, processGauges(1 / processes.workers)),
    processes,
    detached: new DetachedCalls(),
    upkeep,
    operations: openOperations({
      apiKeys,
      bookkeeper,
      health: ownHealth,
      ledger,
      processes,
      rates,
      stores,
      upkeep,
    }),
    stopUpkeep: () => {
      stopPruning();
      stopResponseReports();
      stopKeyListReports();
    },
  };
}

/** Closes what {@link openGatewayServices} opened, in order; the stores stay open. What waits to be charged is charged first. */
export async function closeGatewayServices({
  rates,
  health,
  bookkeeper,
  apiKeys,
  overload,
  stopUpkeep,
}: GatewayServices): Promise<void> {
  stopUpkeep();
  overload.close();
  await health.close();
  await rates.close();
  await bookkeeper.close();
  await apiKeys.stop();
}

/** Logs when the circuit breaker of a key or model opens and closes. Changes from other gateways have a lower log level. */
function logChange(
  log: Log,
  { channel, key, model, standing, before, elsewhere, until, last }: HealthChange,
): void {
  const fields = { channel, keyId: key, model, elsewhere: elsewhere || undefined };
  const why = { code: last?.code, reason: last?.message };
  const rest = until === undefined ? undefined : Math.max(0, until - Date.now());
  if (standing === 'resting' && before !== 'probing')
    log[elsewhere ? 'info' : 'warn']({ ...fields, ...why, rest }, 'circuit breaker of a channel opened');
  else if (standing === 'up' && before !== 'cooling') log.info(fields, 'a channel serves again');
  else log.debug({ ...fields, ...why, standing, rest }, 'state of a channel changed');
}
