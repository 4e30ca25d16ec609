/** Measures what it costs to write records and to remove a day of them, with the code of any checkout. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Opening from '../../core/money/usage-log/open.ts';
import type * as Rows from '../../core/money/usage-log/rows.ts';
import type * as Kinds from '../../core/money/usage-log/kinds.ts';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import type * as Stores from '../../core/state/stores.ts';
import { keyId } from './fill.ts';

const batch = 20;

/** Writes records as the ledger does, some in each transaction, and then removes the oldest day. Prints both. */
export async function reportWrites(
  tree: string,
  url: string,
  { days, keys }: { readonly days: number; readonly keys: number },
  now: number,
): Promise<void> {
  const load = loadingFrom(tree);
  const { openStores } = await load<typeof Stores>('core/state/stores.ts');
  const { openUsageLog } = await load<typeof Opening>('core/money/usage-log/open.ts');
  const rows = await load<typeof Rows>('core/money/usage-log/rows.ts');
  const known = await load<typeof Kinds>('core/money/usage-log/kinds.ts').catch(() => undefined);
  const kinds = known === undefined ? [] : ([new known.Kinds()] as const);
  const stores = openStores(url);
  const { database } = stores;
  try {
    await stores.ready();
    const write = async (records: readonly UsageRecord[]): Promise<void> => {
      if (database.kind === 'postgres') {
        await database.transaction((session) => rows.insertRecordsInPostgres(session, records, ...kinds));
        return;
      }
      database.connection.exec('BEGIN IMMEDIATE');
      rows.insertRecordsInSqlite(database.connection, records);
      database.connection.exec('COMMIT');
    };
    for (const count of [2_000, 20_000]) {
      const cpu = process.cpuUsage();
      const begun = performance.now();
      for (let from = 0; from < count; from += batch)
        await write(Array.from({ length: batch }, (_, index) => recordOf(count, from + index, keys, now)));
      const ms = performance.now() - begun;
      const { user, system } = process.cpuUsage(cpu);
      if (count > 2_000)
        console.log(
          `a record is written in ${((ms * 1_000) / count).toFixed(1)} us, of which ${((user + system) / count).toFixed(1)} us are CPU of the writer (${batch} in a transaction)`,
        );
    }
    const log = openUsageLog(stores);
    await addAll(log);
    // Twice: first it makes what it needs, and removes what the gateway beside it was to remove.
    const prune = (kept: number) => log.prune({ days: kept, records: 1_000_000_000, sumDays: 1_095 });
    await prune(days);
    const begun = performance.now();
    const { records } = await prune(days - 2);
    const ms = performance.now() - begun;
    console.log(
      `${records} old records were removed in ${ms.toFixed(0)} ms (${((records / ms) * 1_000).toFixed(0)} a second)`,
    );
  } finally {
    await stores.close();
  }
}

const loadingFrom =
  (tree: string) =>
  <Module>(path: string): Promise<Module> =>
    import(pathToFileURL(join(tree, path)).href) as Promise<Module>;

/** Adds all records to the sums without the pauses that a gateway makes, and prints how long it takes. */
export async function reportSumming(tree: string, url: string): Promise<void> {
  const load = loadingFrom(tree);
  const { openStores } = await load<typeof Stores>('core/state/stores.ts');
  const { openUsageLog } = await load<typeof Opening>('core/money/usage-log/open.ts');
  const stores = openStores(url);
  try {
    await stores.ready();
    const begun = performance.now();
    const cpu = process.cpuUsage();
    await addAll(openUsageLog(stores));
    const { user, system } = process.cpuUsage(cpu);
    console.log(
      `all records were summed in ${((performance.now() - begun) / 1_000).toFixed(1)} s, with ${((user + system) / 1e6).toFixed(1)} s of CPU`,
    );
  } finally {
    await stores.close();
  }
}

/** A busy machine may not answer in time: then it tries smaller steps. */
async function addAll(log: ReturnType<typeof Opening.openUsageLog>): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- one step after the other
  while (await log.addToSums().catch(() => true));
}

function recordOf(run: number, index: number, keys: number, now: number): UsageRecord {
  const ms = 500 + ((index * 7919) % 9_000);
  return {
    id: `req_0123456789ab${run.toString(16).padStart(4, '0')}${index.toString(36).padStart(8, '0')}`,
    at: now + index,
    keyId: keyId((index * 31) % keys),
    ip: `203.0.113.${index % 200}`,
    operation: 'chat',
    format: index % 3 === 0 ? 'messages' : 'chat-completions',
    upstreamFormat: 'chat-completions',
    model: `model-${index % 12}`,
    upstreamModel: `vendor-model-${index % 12}-20260101`,
    channel: `channel-${index % 5}`,
    stream: index % 2 === 0,
    passThrough: index % 2 === 0,
    status: 200,
    ended: 'complete',
    input: 800 + (index % 3_000),
    output: index % 900,
    cacheRead: index % 700,
    cacheWrite: 0,
    reasoning: index % 50,
    microDollars: 300 + (index % 20_000),
    price: { model: `model-${index % 12}`, input: 3, cacheRead: 0.3, cacheWrite: 3.75, output: 15 },
    ms,
    firstMs: ms / 3,
    gatewayMs: 1.5,
  };
}
