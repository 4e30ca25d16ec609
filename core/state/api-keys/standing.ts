/** Tells operators how many API keys from before an upgrade are not in the lists of keys yet. */
import type { Database } from '../database/index.ts';
import { startSweeping } from '../database/sweeping.ts';
import type { Kept, Upkeep } from '../upkeep.ts';

/** When the keys are counted, in milliseconds: the first time after `pauseWhenFull`, and then again after it while some are missing. */
const times = { pause: 600_000, pauseWhenFull: 5_000 };

/** Tells the upkeep from time to time how many keys are missing in lists, until the returned function is called. */
export function tellKeyLists(database: Database, upkeep: Upkeep): () => void {
  return startSweeping(
    async () => {
      const kept = await keyListsStanding(database);
      upkeep.set(kept);
      return kept.rows > 0;
    },
    times,
    // Those who ask the database for more than a figure say why it does not answer.
    () => {},
  );
}

/** Returns how many keys are not in lists and searches yet, and for how long the oldest has been missing. */
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
  const [cursor] = await ask(database, 'SELECT after AS value FROM api_keys_filling');
  if (cursor === undefined) return 0;
  const count = "SELECT COUNT(*) AS value FROM keyv WHERE namespace = 'api-keys' AND key > ";
  const [row] = await ask(database, count, String(cursor['value']));
  return Number(row?.['value']);
}

async function secondsSinceUpgrade(database: Database): Promise<number> {
  const [row] = await ask(
    database,
    "SELECT applied AS value FROM sluice_additions WHERE name = 'api-keys-1'",
  );
  return row === undefined ? 0 : Math.max(0, Math.round((Date.now() - Number(row['value'])) / 1_000));
}

/** Reads beside the event loop. A value stands at the end of the statement. */
function ask(
  database: Database,
  sql: string,
  ...values: readonly string[]
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const [place, other] = values.length === 0 ? ['', ''] : ['?', '$1'];
  return database.kind === 'sqlite'
    ? database.read(sql + place, values)
    : database.query(sql + other, values);
}
