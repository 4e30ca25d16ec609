/** Reports to operators how many API keys from before an upgrade are missing in the lists of keys. */
import type { Database } from '../database/index.ts';
import { startSweeping } from '../database/sweeping.ts';
import type { Kept, Upkeep } from '../upkeep.ts';

/** Interval of the counts in milliseconds: `pauseWhenFull` before the first count and while keys are missing, else `pause`. */
const times = { pause: 600_000, pauseWhenFull: 5_000 };

/** Reports the number of missing keys to the upkeep at intervals, until the returned function is called. */
export function startKeyListReports(database: Database, upkeep: Upkeep): () => void {
  return startSweeping(
    async () => {
      const kept = await keyListsStanding(database);
      upkeep.set(kept);
      return kept.rows > 0;
    },
    times,
    // Ignores errors, because other users of the database report them.
    () => {},
  );
}

/** Returns how many keys are missing in lists and searches, and for how long. */
export async function keyListsStanding(database: Database): Promise<Kept & { readonly rows: number }> {
  const rows = await missingKeys(database);
  const overdueSeconds = rows === 0 ? 0 : await secondsSinceUpgrade(database);
  return {
    what: 'api-key-lists',
    rule: 'API keys from before an upgrade are added to lists and searches once, after the start.',
    rows,
    overdueSeconds,
    ...(rows > 0 && {
      warning: `${rows} API ${rows === 1 ? 'key' : 'keys'} from before the upgrade cannot be listed or searched yet. Their calls work.`,
    }),
  };
}

async function missingKeys(database: Database): Promise<number> {
  const [cursor] = await readRows(database, 'SELECT after AS value FROM api_keys_filling');
  if (cursor === undefined) return 0;
  const count = "SELECT COUNT(*) AS value FROM keyv WHERE namespace = 'api-keys' AND key > ";
  const [row] = await readRows(database, count, String(cursor['value']));
  return Number(row?.['value']);
}

async function secondsSinceUpgrade(database: Database): Promise<number> {
  const [row] = await readRows(
    database,
    "SELECT applied AS value FROM sluice_additions WHERE name = 'api-keys-1'",
  );
  return row === undefined ? 0 : Math.max(0, Math.round((Date.now() - Number(row['value'])) / 1_000));
}

/** Runs a SELECT without blocking the event loop. Appends a placeholder when there is a value. */
function readRows(
  database: Database,
  sql: string,
  ...values: readonly string[]
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const [sqlitePlaceholder, postgresPlaceholder] = values.length === 0 ? ['', ''] : ['?', '$1'];
  return database.kind === 'sqlite'
    ? database.read(sql + sqlitePlaceholder, values)
    : database.query(sql + postgresPlaceholder, values);
}
