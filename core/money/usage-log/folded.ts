/** Finds the folds that there are, and removes those to whose time records were added later. */
import type { Query } from '../../state/database/long-reads.ts';
import { rows, type Row, type Work } from '../../state/database/sql.ts';
import { firstSubjectFold, foldGrace, type Fold, type UsedFold } from './folds.ts';
import { hour, minute, startOf, type Folded } from './levels.ts';
import type { Source } from './narrowing.ts';

/** The largest number that the columns of keys and owners hold. */
export const largestId = 2_147_483_647;

/** A condition for folds that are whole and have what was charged: those that older gateways make have not, and are made anew. */
export const isWhole = `after IS NULL AND charged = ${largestId}`;

/** Returns the folds that there are of a time. `until` is exclusive. */
export async function foldedIn(
  query: Query,
  all: readonly Fold[],
  since: number,
  until: number,
): Promise<readonly Folded[]> {
  if (all.length === 0) return [];
  const { sql, values } = foldsQuestion(all, since, until);
  return foldedOf(all, await query(sql, values));
}

/** Returns the statement that {@link foldedOf} takes the rows of. */
export function foldsQuestion(all: readonly Fold[], since: number, until: number): Source {
  return {
    sql: `SELECT level, start FROM usage_folds WHERE level IN (${all.map(({ level }) => level).join(', ')})
       AND start >= ? AND until <= ? AND ${isWhole} ORDER BY start`,
    values: [startOf(since), startOf(until)],
  };
}

/** Returns the folds that the rows of {@link foldsQuestion} name. */
export function foldedOf(all: readonly Fold[], found: readonly Row[]): readonly Folded[] {
  return all.map(({ level, size }) => ({
    level,
    size,
    starts: found.flatMap((one) => (Number(one['level']) === level ? [Number(one['start']) * minute] : [])),
  }));
}

/** Returns SQL for the number of these folds that there are still. */
export function countOfFolds(used: readonly UsedFold[]): string {
  if (used.length === 0) return '0';
  const each = used.map(({ level, start }) => `(level = ${level} AND start = ${Math.trunc(start / minute)})`);
  return `(SELECT COUNT(*) FROM usage_folds WHERE ${isWhole} AND (${each.join(' OR ')}))`;
}

/** Removes the folds of times to which records were added; belongs in the same transaction. `starts`: times of records. */
export function* unfold(starts: Iterable<number>, isOfSubjects: boolean): Work<void> {
  // Recent times have no folds; half of the time for clocks that differ.
  const before = Date.now() - foldGrace / 2;
  const hours = new Set<number>();
  for (const start of starts) if (start < before) hours.add(start - (start % hour));
  const levels = `level ${isOfSubjects ? '>=' : '<'} ${firstSubjectFold}`;
  for (const start of hours)
    yield* rows(
      `DELETE FROM usage_folds WHERE until > ? AND start <= ? AND ${levels}`,
      startOf(start),
      startOf(start),
    );
}
