/** Adds records to the sums of owners, tags and end users, in both databases. */
import type { Database } from '../../state/database/index.ts';
import { row, rows, sqlOf, type Row, type Work } from '../../state/database/sql.ts';
import { subjectsOf, tenantOf, type Value } from './subjects-of-call.ts';
import { addingLock } from './adding-lock.ts';
import { unfold } from './folded.ts';
import { amounts, day, hour, largestStart, largestSum, minute } from './levels.ts';
import { ChosenSubjects, isChosen } from './chosen-subjects.ts';
import { newSubjectLevels, subjectLevels, subjectLimits, type SubjectLimits } from './subjects.ts';

const nameColumns = [
  ['model', 'TEXT'],
  ['channel', 'TEXT'],
  ['format', 'TEXT'],
  ['operation', 'TEXT'],
  ['status', 'SMALLINT'],
  ['failed', 'SMALLINT'],
] as const;
const subjectColumns = [
  ['kind', 'SMALLINT'],
  ['subject', 'TEXT'],
  ['key_id', 'TEXT'],
  ['team', 'TEXT'],
  ['member', 'TEXT'],
  ['organisation', 'TEXT'],
] as const;
const totalColumns = ['level', 'start', 'subject', 'names', 'calls', ...amounts].map(
  (name) => [name, 'BIGINT'] as const,
);
type Columns = readonly (readonly [name: string, type: string])[];

/** SELECT of the rows of a JSON text: an array of arrays. `place` is the number of each. */
function given(kind: Database['kind'], columns: Columns): string {
  return kind === 'sqlite'
    ? `SELECT key AS place, ${columns.map(([name], index) => `json_extract(value, '$[${index}]') AS ${name}`).join(', ')} FROM json_each(?)`
    : `SELECT place - 1 AS place, ${columns.map(([name, type], index) => `(value ->> ${index})::${type} AS ${name}`).join(', ')}
       FROM json_array_elements(?::json) WITH ORDINALITY AS given (value, place)`;
}

/** Statements that add rows to a table that numbers them, and that look their numbers up. */
function numbering(kind: Database['kind'], table: string, columns: Columns, unique: readonly string[]) {
  const names = columns.map(([name]) => name).join(', ');
  const withDay = given(kind, [...columns, ['last_day', 'INTEGER']]);
  const isSame = unique.map((name) => `t.${name} = g.${name}`).join(' AND ');
  const onConflict = `ON CONFLICT (${unique.join(', ')}) DO UPDATE SET last_day = excluded.last_day WHERE ${table}.last_day < excluded.last_day`;
  return {
    add:
      kind === 'sqlite'
        ? `INSERT INTO ${table} (${names}, last_day) SELECT ${names}, last_day FROM (${withDay}) AS g WHERE true ${onConflict}`
        : // Only those that are not there are numbered, because numbers of others would be lost.
          `WITH g AS (${withDay}),
           seen AS (UPDATE ${table} AS t SET last_day = g.last_day FROM g WHERE ${isSame} AND t.last_day < g.last_day)
           INSERT INTO ${table} (id, ${names}, last_day)
           SELECT (SELECT COALESCE(MAX(id), 0) FROM ${table}) + ROW_NUMBER() OVER (), ${names}, last_day
           FROM g WHERE NOT EXISTS (SELECT 1 FROM ${table} AS t WHERE ${isSame}) ${onConflict}`,
    find: `SELECT g.place, t.id FROM (${given(kind, columns)}) AS g JOIN ${table} t ON ${isSame}`,
  };
}

function statementsFor(kind: Database['kind']) {
  const both = (name: string): string =>
    kind === 'sqlite'
      ? `NULLIF(CAST(MIN(COALESCE(${name}, 0) + COALESCE(excluded.${name}, 0), ${largestSum}) AS INTEGER), 0)`
      : `NULLIF(LEAST(COALESCE(usage_subject_totals.${name}, 0)::numeric + COALESCE(excluded.${name}, 0), ${largestSum})::bigint, 0)`;
  const names = totalColumns.map(([name]) => name).join(', ');
  const owners = 'o.team, o.member, o.organisation';
  return {
    take:
      kind === 'sqlite'
        ? `SELECT u.rowid AS place, u.*, ${owners} FROM usage_unsummed_owned u LEFT JOIN usage_owners o ON o.id = u.owners ORDER BY u.rowid LIMIT ?`
        : `WITH taken AS (
             DELETE FROM usage_unsummed_owned WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage_unsummed_owned LIMIT ?)) RETURNING *)
           SELECT u.*, ${owners} FROM taken u LEFT JOIN usage_owners o ON o.id = u.owners`,
    names: numbering(
      kind,
      'usage_names',
      nameColumns,
      nameColumns.map(([name]) => name),
    ),
    subjects: numbering(kind, 'usage_subjects', subjectColumns, ['kind', 'subject']),
    add: `INSERT INTO usage_subject_totals (${names}) SELECT ${names} FROM (${given(kind, totalColumns)}) AS given_rows WHERE true
      ORDER BY level, start, subject, names ON CONFLICT (level, start, subject, names) DO UPDATE SET
        ${['calls', ...amounts].map((name) => `${name} = ${both(name)}`).join(', ')}`,
  };
}

/** Amounts to be added to one row. */
interface Addition {
  readonly level: number;
  /** In milliseconds. */
  readonly start: number;
  readonly subject: number;
  readonly names: number;
  calls: number;
  readonly amounts: number[];
}

/**
 * Returns a function that adds records to the sums of their owners, tags and end users, a bounded number at a time, in one transaction with the
 * removal of the note that they are in none. Resolves with true when there may be more.
 */
export function createSubjectSumming(
  database: Database,
  limits: SubjectLimits = subjectLimits,
): () => Promise<boolean> {
  const sql = sqlOf(database);
  const statements = statementsFor(database.kind);
  const batch = 500;

  function* add(): Work<boolean> {
    if (!(yield* addingLock(database.kind))) return false;
    const found = yield* rows(statements.take, batch);
    if (found.length === 0) return false;
    const chosen = new ChosenSubjects(database.kind, limits);
    const parts = found.map((one) => ({ one, at: Number(one['at']), subjects: subjectsOf(one) }));
    yield* chosen.read(
      parts.flatMap((part) =>
        part.subjects.flatMap(({ kind, values }) =>
          isChosen(kind) ? [{ kind, subject: String(values[1]), at: part.at }] : [],
        ),
      ),
    );
    const names = new Numbered();
    const subjects = new Numbered();
    const additions = new Map<string, Addition>();
    for (const { one, at, subjects: own } of parts) {
      const lastDay = Math.floor(at / day);
      const named = names.place(
        nameColumns.map(([name]) => one[name] as Value),
        lastDay,
      );
      const unnamed = names.place(unnamedOf(one), lastDay);
      for (const subject of own) {
        const { kind } = subject;
        let { values } = subject;
        if (isChosen(kind)) {
          const tenant = tenantOf(one);
          const isNew = chosen.take(kind, String(values[1]), at, tenant);
          if (isNew === undefined) values = [values[0] ?? 0, '', ...values.slice(2)];
          else if (isNew) {
            const { level, kind: number } = newSubjectLevels[kind];
            const place = subjects.place([number, tenant, null, null, null, null], lastDay);
            count(additions, undefined, { level, start: at - (at % hour), subject: place, names: unnamed });
          }
        }
        const place = subjects.place(values, lastDay);
        for (const { level, size, hasNames, kind: summed } of subjectLevels)
          if (summed === kind)
            count(additions, one, {
              level,
              start: at - (at % size),
              subject: place,
              names: hasNames ? named : unnamed,
            });
      }
    }
    yield* write(statements, names, subjects, additions);
    yield* unfold(
      found.map(({ at }) => Number(at)),
      true,
    );
    if (database.kind === 'sqlite')
      yield* rows(
        'DELETE FROM usage_unsummed_owned WHERE rowid <= ?',
        found.reduce((last, { place }) => Math.max(last, Number(place)), 0),
      );
    return found.length === batch;
  }

  return async () => {
    const waiting = await sql.run(() => row('SELECT 1 FROM usage_unsummed_owned LIMIT 1'));
    return waiting === undefined ? false : sql.atomically(add);
  };
}

function* write(
  statements: ReturnType<typeof statementsFor>,
  names: Numbered,
  subjects: Numbered,
  additions: ReadonlyMap<string, Addition>,
): Work<void> {
  const nameIds = yield* names.ids(statements.names);
  const subjectIds = yield* subjects.ids(statements.subjects);
  const values = [...additions.values()].map((one) => [
    one.level,
    Math.max(0, Math.min(largestStart, Math.floor(one.start / minute))),
    subjectIds[one.subject] ?? 0,
    nameIds[one.names] ?? 0,
    Math.min(one.calls, largestSum),
    ...one.amounts.map((amount) => (amount === 0 ? null : Math.min(amount, largestSum))),
  ]);
  yield* rows(statements.add, JSON.stringify(values));
}

function count(
  additions: Map<string, Addition>,
  source: Row | undefined,
  { level, start, subject, names }: Pick<Addition, 'level' | 'start' | 'subject' | 'names'>,
): void {
  const place = `${level} ${start} ${subject} ${names}`;
  let one = additions.get(place);
  if (one === undefined) {
    one = { level, start, subject, names, calls: 0, amounts: amounts.map(() => 0) };
    additions.set(place, one);
  }
  one.calls += 1;
  if (source === undefined) return;
  for (const [index, name] of amounts.entries())
    one.amounts[index] = (one.amounts[index] ?? 0) + Number(source[name]);
}

/** Names of sums without names: whether calls failed, and whether they were refused. */
function unnamedOf({ failed, channel, status }: Row): readonly Value[] {
  const isRefused = Number(failed) === 1 && channel === '' && Number(status) >= 400 && Number(status) <= 498;
  return ['', '', '', '', isRefused ? 400 : 0, Number(failed)];
}

/** Rows of a table that numbers them, each once. */
class Numbered {
  readonly #places = new Map<string, number>();
  readonly #rows: Value[][] = [];

  place(values: readonly Value[], lastDay: number): number {
    const text = values.join('\0');
    let place = this.#places.get(text);
    if (place === undefined) {
      place = this.#rows.length;
      this.#places.set(text, place);
      this.#rows.push([...values, lastDay]);
      return place;
    }
    const found = this.#rows[place];
    if (found !== undefined) found[values.length] = Math.max(Number(found[values.length]), lastDay);
    return place;
  }

  /** Their numbers in the database, by their places. */
  *ids({ add, find }: ReturnType<typeof numbering>): Work<readonly number[]> {
    const text = JSON.stringify(this.#rows);
    yield* rows(add, text);
    const ids: number[] = [];
    for (const { place, id } of yield* rows(find, text)) ids[Number(place)] = Number(id);
    return ids;
  }
}
