/** Reports periodically if expired responses are removed and how many conversations are stored, for the status of the gateway. */
import type { Database } from '../database/index.ts';
import { startSweeping } from '../database/sweeping.ts';
import type { Kept, Upkeep } from '../upkeep.ts';
import { nowInSeconds } from './tables.ts';

/** Interval of the reports in milliseconds; the first one comes after `pauseWhenFull`. */
const times = { pause: 600_000, pauseWhenFull: 10_000 };

/** Starts the reports to `upkeep`, until the returned function is called. */
export function startResponseReports(database: Database, upkeep: Upkeep): () => void {
  return startSweeping(
    async () => {
      for (const kept of await responsesStanding(database)) upkeep.set(kept);
      return false;
    },
    times,
    // Ignores errors, because other users of the database report them.
    () => {},
  );
}

/** Returns the state of stored responses and conversations, compared with their retention. */
export async function responsesStanding(database: Database): Promise<readonly Kept[]> {
  const queryFigure = async (sql: string): Promise<number | undefined> => {
    const [row] = await (database.kind === 'sqlite' ? database.read(sql, []) : database.query(sql));
    return row === undefined ? undefined : Number(row['figure']);
  };
  const oldest = await queryFigure('SELECT expires AS figure FROM responses ORDER BY expires LIMIT 1');
  const overdueSeconds = oldest === undefined ? 0 : Math.max(0, nowInSeconds() - oldest);
  return [
    {
      what: 'responses',
      rule: 'Stored responses are removed when they expire.',
      overdueSeconds,
      ...(overdueSeconds > 86_400 && {
        warning: 'Expired responses are not removed: the log of the gateway says why.',
      }),
    },
    {
      what: 'conversations',
      rule: 'Conversations are kept until a client deletes them.',
      rows: (await queryFigure('SELECT COUNT(*) AS figure FROM conversations')) ?? 0,
      overdueSeconds: 0,
    },
  ];
}
