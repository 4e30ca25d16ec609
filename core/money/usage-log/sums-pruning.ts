/** Removes sums that are too old, and names that no sum has any more. */
import { rows, type Sql } from '../../state/database/sql.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import { addingLock } from './adding-lock.ts';
import { folds, type Fold } from './folds.ts';
import { day, hour, levels, minute, minutesKept } from './levels.ts';
import { newSubjectLevels, subjectLevels } from './subjects.ts';

/** Names that are removed at once. */
const batch = 500;

const foldLevels: ReadonlySet<number> = new Set(folds.map(({ level }) => level));

const isOf =
  (table: Fold['table']) =>
  (one: Fold): boolean =>
    one.table === table;

/** Sums of a time, where they are: those of older gateways are in a table of their own until they are moved. */
const tables = [
  { name: 'usage_totals', unit: minute, sizes: [...levels, ...folds.filter(isOf('usage_totals'))] },
  { name: 'usage_sums', unit: 1, sizes: levels },
  {
    name: 'usage_subject_totals',
    unit: minute,
    sizes: [
      ...subjectLevels,
      ...Object.values(newSubjectLevels),
      ...folds.filter(isOf('usage_subject_totals')),
    ],
  },
] as const;

/** Removes sums of times that are too old, one time after the other; returns how many times there were. */
export async function removeSums(sql: Sql, days: number): Promise<number> {
  let removed = 0;
  for (const { name, unit, sizes } of tables)
    for (const { level, size } of sizes) {
      const before = Math.floor((Date.now() - (size < hour ? minutesKept : days * day)) / size) * size;
      // Also those of times that had no sums.
      if (foldLevels.has(level))
        await sql.run(() =>
          rows('DELETE FROM usage_folds WHERE level = ? AND start < ?', level, before / minute),
        );
      for (;;) {
        const [oldest] = await sql.run(() =>
          rows(
            `SELECT start FROM ${name} WHERE level = ? AND start < ? ORDER BY start LIMIT 1`,
            level,
            before / unit,
          ),
        );
        if (oldest === undefined) break;
        await sql.run(() =>
          rows(`DELETE FROM ${name} WHERE level = ? AND start = ?`, level, Number(oldest['start'])),
        );
        removed += 1;
        await yieldTurn();
      }
    }
  await removeNames(sql, days);
  return removed;
}

/** Removes names and keys whose sums have gone. Two days more, because a sum of a day has the time at which the day began. */
async function removeNames(sql: Sql, days: number): Promise<void> {
  const before = Math.floor(Date.now() / day - days) - 2;
  for (const table of ['usage_names', 'usage_keys', 'usage_subjects'])
    for (let found = batch; found === batch;) {
      found = await sql.atomically(function* remove() {
        // Whoever adds sums has looked up their names.
        if (!(yield* addingLock(sql.database.kind))) return 0;
        const gone = yield* rows(
          `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE last_day < ? LIMIT ?) RETURNING id`,
          before,
          batch,
        );
        return gone.length;
      });
      await yieldTurn();
    }
}
