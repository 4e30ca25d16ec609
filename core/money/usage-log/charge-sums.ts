/** Adds to the sums what calls were charged beyond their cost. */
import type { Database } from '../../state/database/index.ts';
import { rows, type Row, type Work } from '../../state/database/sql.ts';
import { unfold } from './folded.ts';
import { day, largestSum, levels, minute, minutesKept, startOf } from './levels.ts';
import { given, namedOf, Numbered, numberings } from './numbering.ts';
import { unnamedOf, type Subject, type Value } from './subjects-of-call.ts';
import { subjectLevels } from './subjects.ts';

/** A call with its charge, and the subjects that it is counted for. */
export interface ChargedCall {
  readonly one: Row;
  readonly at: number;
  readonly subjects: readonly Subject[];
}

type Added = Map<string, { readonly values: readonly number[]; more: number }>;

/** Returns the statements of {@link addCharges}, and the one that reads the charges that wait for it. */
export function chargeStatements(kind: Database['kind']) {
  const rowNumber = kind === 'sqlite' ? 'u.rowid' : 'CAST(u.ctid AS TEXT)';
  const chosen =
    kind === 'sqlite'
      ? 'SELECT value FROM json_each(?)'
      : 'SELECT value::tid FROM json_array_elements_text(?::json)';
  const clamped = (value: string): string =>
    kind === 'sqlite'
      ? `CAST(MAX(MIN(${value}, ${largestSum}), -${largestSum}) AS INTEGER)`
      : `GREATEST(LEAST(${value}, ${largestSum}), -${largestSum})::bigint`;
  const numeric = kind === 'sqlite' ? '' : '::numeric';
  const adding = (table: string, id: string): string => {
    const key = `level, start, ${id}, names`;
    const columns = [...key.split(', '), 'charged_more'].map((name) => [name, 'BIGINT'] as const);
    return `INSERT INTO ${table} (${key}, calls, charged_more) SELECT ${key}, 0, charged_more FROM (${given(kind, columns)}) AS given_rows
      WHERE true ORDER BY ${key} ON CONFLICT (${key}) DO UPDATE SET
      charged_more = NULLIF(${clamped(`COALESCE(${table}.charged_more, 0)${numeric} + excluded.charged_more`)}, 0)`;
  };
  return {
    ...numberings(kind),
    read: `SELECT ${rowNumber} AS place, u.*, o.team, o.member, o.organisation
      FROM usage_unsummed_charged u LEFT JOIN usage_owners o ON o.id = u.owners ORDER BY ${kind === 'sqlite' ? 'u.rowid' : 'u.ctid'} LIMIT ?`,
    remove: `DELETE FROM usage_unsummed_charged WHERE ${kind === 'sqlite' ? 'rowid IN' : 'ctid = ANY'} (${kind === 'sqlite' ? chosen : `ARRAY(${chosen})`})`,
    totals: adding('usage_totals', 'key'),
    subjectTotals: adding('usage_subject_totals', 'subject'),
  };
}

/** Adds charges to all sums in which their calls are, and removes the note that they are in none; belongs in a transaction with the lock of sums. */
export function* addCharges(
  statements: ReturnType<typeof chargeStatements>,
  calls: readonly ChargedCall[],
): Work<void> {
  const names = new Numbered();
  const keys = new Numbered();
  const subjects = new Numbered();
  const totals: Added = new Map();
  const subjectTotals: Added = new Map();
  const minutesSince = Date.now() - minutesKept;
  for (const { one, at, subjects: own } of calls) {
    const lastDay = Math.floor(at / day);
    const more = Number(one['charged_more']);
    const named = names.indexOf(namedOf(one), lastDay);
    const unnamed = names.indexOf(unnamedOf(one), lastDay);
    const key = keys.indexOf([one['key_id'] as Value], lastDay);
    for (const { level, size, hasKeys, hasNames } of levels) {
      const start = at - (at % size);
      if (size > minute || start >= minutesSince)
        add(totals, [level, start, hasKeys ? key : -1, hasNames ? named : unnamed], more);
    }
    for (const { kind, values } of own) {
      const subject = subjects.indexOf(values, lastDay);
      for (const { level, size, hasNames, kind: summed } of subjectLevels)
        if (summed === kind)
          add(subjectTotals, [level, at - (at % size), subject, hasNames ? named : unnamed], more);
    }
  }
  const nameIds = yield* names.ids(statements.names);
  const keyIds = yield* keys.ids(statements.keys);
  const subjectIds = yield* subjects.ids(statements.subjects);
  yield* rows(statements.totals, rowsOf(totals, keyIds, nameIds));
  yield* rows(statements.subjectTotals, rowsOf(subjectTotals, subjectIds, nameIds));
  const starts = calls.map(({ at }) => at);
  yield* unfold(starts, false);
  yield* unfold(starts, true);
  yield* rows(statements.remove, JSON.stringify(calls.map(({ one }) => one['place'])));
}

function add(added: Added, values: readonly number[], more: number): void {
  const key = values.join(' ');
  const found = added.get(key);
  if (found === undefined) added.set(key, { values, more });
  else found.more += more;
}

/** Rows as JSON. Sums of all keys have 0 in the place of a key. */
function rowsOf(added: Added, ids: readonly number[], nameIds: readonly number[]): string {
  return JSON.stringify(
    [...added.values()].map(({ values: [level = 0, start = 0, id = -1, name = 0], more }) => [
      level,
      startOf(start),
      ids[id] ?? 0,
      nameIds[name] ?? 0,
      Math.max(-largestSum, Math.min(more, largestSum)),
    ]),
  );
}
