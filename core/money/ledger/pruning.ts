/** Removes what keys spent in days and months long past. */
import type { Database } from '../../state/database/index.ts';
import { rows, sqlOf } from '../../state/database/sql.ts';
import { startSweeping } from '../../state/database/sweeping.ts';
import { endUserPrefix } from './windows.ts';
import type { Upkeep } from '../../state/upkeep.ts';

const day = 86_400_000;

/** How long spending by day and by month is kept, in days. Budgets look at the current day and month alone. */
const kept = { day: 62, month: 400, 'hours:%': 8, 'day@%': 62 } as const;

/** The same of end users, whose sums are of use in their period alone. */
const keptOfEndUsers = { 'hours:%': 8, 'day@%': 2, 'week@%': 8, 'month@%': 32 } as const;

/** Each period, the days for which it is kept, and the SQL for whose sums these are. */
const removed = [
  ...Object.entries(kept).map(([period, days]) => [period, days, 'NOT LIKE'] as const),
  ...Object.entries(keptOfEndUsers).map(([period, days]) => [period, days, 'LIKE'] as const),
];

/** Keys that one step looks at. */
const batch = 200;

/** End users that one step removes. */
const batchOfEndUsers = 5_000;

/** How often everything is looked at, in milliseconds, and the pause between two steps. */
const times = { pause: 3_600_000, pauseWhenFull: 1_000 };

/**
 * Removes what keys spent on days and in months long past, some keys at a time, until the returned function is called. Tells the upkeep how
 * long ago all of it was looked at.
 */
export function startLedgerPruning(
  database: Database,
  upkeep: Upkeep,
  failed: (error: unknown) => void,
): () => void {
  const { run } = sqlOf(database);
  /** The last key that was looked at; undefined when all were. */
  let after: string | undefined = '';
  let doneAt = Date.now();
  const report = (): void =>
    upkeep.set({
      what: 'spending',
      rule: `What keys spent is kept by day for ${kept.day} days, by month for ${kept.month} days, and in total for good.`,
      overdueSeconds: Math.max(0, Math.round((Date.now() - doneAt - 2 * times.pause) / 1_000)),
    });
  report();
  /** Removes what the keys that follow have spent. Returns the last of them; undefined when no others follow. */
  const pruneKeys = async (from: string): Promise<string | undefined> => {
    const found = await run(() =>
      rows('SELECT DISTINCT key_id FROM ledger_spent WHERE key_id > ? ORDER BY key_id LIMIT ?', from, batch),
    );
    const last = found.at(-1)?.['key_id'];
    if (last !== undefined)
      for (const [period, days, users] of removed)
        await run(() =>
          rows(
            `DELETE FROM ledger_spent WHERE key_id > ? AND key_id <= ? AND key_id ${users} '${endUserPrefix}%' AND period LIKE ? AND since < ?`,
            from,
            String(last),
            period,
            Date.now() - days * day,
          ),
        );
    return found.length === batch ? String(last) : undefined;
  };
  /** Removes end users of periods that are over. Returns how many. */
  const pruneEndUsers = async (): Promise<number> => {
    const found = await run(() =>
      rows(
        `DELETE FROM ledger_end_users WHERE (scope, until, holder) IN
           (SELECT scope, until, holder FROM ledger_end_users WHERE until < ? ORDER BY until LIMIT ?) RETURNING until`,
        Date.now() - day,
        batchOfEndUsers,
      ),
    );
    return found.length;
  };
  return startSweeping(
    async () => {
      report();
      if (after !== undefined) after = await pruneKeys(after);
      const isFull = after !== undefined || (await pruneEndUsers()) === batchOfEndUsers;
      if (!isFull) {
        after = '';
        doneAt = Date.now();
      }
      report();
      return isFull;
    },
    times,
    failed,
  );
}
