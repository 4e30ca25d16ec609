/** Removes sums that are too old, and names that no sum has any more. */
import { rows, type Sql } from '../../state/database/sql.ts';
import { yieldToEventLoop } from '../../state/database/yield-to-event-loop.ts';
import { addingLock } from './adding-lock.ts';
import { largestId } from './folded.ts';
import { folds, latestStart, type Fold } from './folds.ts';
import { day, hour, levels, minute, minutesKept } from './levels.ts';
import { newSubjectLevels, subjectLevels } from './subjects.ts';

/** Names that are removed at once. */
const batch = 500;

/** About how many sums are removed at once. */
const portionOfSums = 5_000;

const foldLevels: ReadonlySet<number> = new Set(folds.map(({ level }) => level));

const isOf =
  (table: Fold['table']) =>
  (one: Fold): boolean =>
    one.table === table;

/** Sums of a time, where they are: those of older gateways are in a table of their own until they are moved. */
const tables = [
  {
    name: 'usage_totals',
    unit: minute,
    id: 'key',
    sizes: [...levels, ...folds.filter(isOf('usage_totals'))],
  },
  { name: 'usage_sums', unit: 1, id: undefined, sizes: levels },
  {
    name: 'usage_subject_totals',
    unit: minute,
    id: 'subject',
    sizes: [
      ...subjectLevels,
      ...Object.values(newSubjectLevels),
      ...folds.filter(isOf('usage_subject_totals')),
    ],
  },
] as const;

/** Removes sums of times that are too old, one time after the other; returns in how many steps. */
export async function removeSums(sql: Sql, days: number): Promise<number> {
  let removed = 0;
  for (const { name, unit, id, sizes } of tables)
    for (const one of sizes) {
      const { level } = one;
      const before = firstKept(one, days);
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
        // Those of a few keys or owners at a time: a day may have a row for each of very many.
        const portion =
          id === undefined
            ? ''
            : ` AND ${id} <= COALESCE((SELECT ${id} FROM ${name} WHERE level = ${level} AND start = ${Number(oldest['start'])}
                 ORDER BY ${id} LIMIT 1 OFFSET ${portionOfSums}), ${largestId})`;
        await sql.run(() =>
          rows(`DELETE FROM ${name} WHERE level = ? AND start = ?${portion}`, level, Number(oldest['start'])),
        );
        removed += 1;
        await yieldToEventLoop();
      }
    }
  await removeNames(sql, days);
  return removed;
}

/** When the oldest sums begin that are kept, in milliseconds. */
function firstKept(
  one: { readonly size: number } & Partial<Pick<Fold, 'isOfLatest' | 'keptFor'>>,
  days: number,
): number {
  const { size, keptFor = Infinity } = one;
  // A question that has just found the ones before reads them still.
  if (one.isOfLatest === true) return latestStart(one, Date.now()) - day;
  const age = size < hour ? minutesKept : Math.min(days * day, keptFor);
  return Math.floor((Date.now() - age) / size) * size;
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
      await yieldToEventLoop();
    }
}
