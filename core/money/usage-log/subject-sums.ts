/** Adds records to the sums of owners, tags and end users, in both databases. */
import type { Database } from '../../state/database/index.ts';
import { row, rows, sqlOf, type Row, type Work } from '../../state/database/sql.ts';
import { addingLock } from './adding-lock.ts';
import { unfold } from './folded.ts';
import { addCharges, chargeStatements, type ChargedCall } from './charge-sums.ts';
import { ChosenSubjects, isChosen } from './chosen-subjects.ts';
import { amounts, day, hour, largestSum, startOf } from './levels.ts';
import { given, namedOf, Numbered, numberings } from './numbering.ts';
import { subjectsOf, tenantOf, unnamedOf, type Subject } from './subjects-of-call.ts';
import { newSubjectLevels, subjectLevels, subjectLimits, type SubjectLimits } from './subjects.ts';

const totalColumns = ['level', 'start', 'subject', 'names', 'calls', ...amounts].map(
  (name) => [name, 'BIGINT'] as const,
);

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
    ...numberings(kind),
    charges: chargeStatements(kind),
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
 * Returns a function that adds records to the sums of their owners, tags and end users, and charges to all sums, a bounded number at a time, in one
 * transaction with the removal of the note that they are in none. Resolves with true when there may be more.
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
    // Charges are read before calls: unless there are too many calls for one step, those of the charges are counted in this step or were before.
    const charged = yield* rows(statements.charges.read, batch);
    const found = yield* rows(statements.take, batch);
    const charges = found.length === batch ? [] : charged;
    if (found.length === 0 && charges.length === 0) return false;
    const chosen = new ChosenSubjects(database.kind, limits);
    const parts = found.map(callOf);
    const chargedParts = charges.map(callOf);
    yield* chosen.read(chosenIn([...parts, ...chargedParts]));
    const names = new Numbered();
    const subjects = new Numbered();
    const additions = new Map<string, Addition>();
    const numbered = { names, subjects, additions };
    for (const part of parts) addCall(part, chosen, numbered);
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
    if (chargedParts.length > 0)
      yield* addCharges(
        statements.charges,
        chargedParts.map(({ one, at, subjects: own }) => ({
          one,
          at,
          subjects: own.map((subject) => (chosen.has(subject, at) ? subject : others(subject))),
        })),
      );
    return charged.length === batch || found.length === batch;
  }

  return async () => {
    const waiting = await sql.run(() =>
      row('SELECT 1 FROM usage_unsummed_owned UNION ALL SELECT 1 FROM usage_unsummed_charged LIMIT 1'),
    );
    return waiting === undefined ? false : sql.atomically(add);
  };
}

/** Rows that are added to, with the names and subjects that they need numbers for. */
interface Numbering {
  readonly names: Numbered;
  readonly subjects: Numbered;
  readonly additions: Map<string, Addition>;
}

/** Adds one call to the sums of all its subjects. */
function addCall(
  { one, at, subjects: own }: ChargedCall,
  chosen: ChosenSubjects,
  { names, subjects, additions }: Numbering,
): void {
  const lastDay = Math.floor(at / day);
  const named = names.indexOf(namedOf(one), lastDay);
  const unnamed = names.indexOf(unnamedOf(one), lastDay);
  for (const subject of own) {
    const { kind } = subject;
    let { values } = subject;
    if (isChosen(kind)) {
      const tenant = tenantOf(one);
      const isNew = chosen.take(kind, String(values[1]), at, tenant);
      if (isNew === undefined) ({ values } = others(subject));
      else if (isNew) {
        const { level, kind: number } = newSubjectLevels[kind];
        const id = subjects.indexOf([number, tenant, null, null, null, null], lastDay);
        count(additions, undefined, { level, start: at - (at % hour), subject: id, names: unnamed });
      }
    }
    const id = subjects.indexOf(values, lastDay);
    for (const { level, size, hasNames, kind: summed } of subjectLevels)
      if (summed === kind)
        count(additions, one, {
          level,
          start: at - (at % size),
          subject: id,
          names: hasNames ? named : unnamed,
        });
  }
}

/** Returns the tags and end users of calls, which are kept up to a maximum number. */
function chosenIn(parts: readonly ChargedCall[]): Parameters<ChosenSubjects['read']>[0] {
  return parts.flatMap(({ at, subjects }) =>
    subjects.flatMap(({ kind, values }) =>
      isChosen(kind) ? [{ kind, subject: String(values[1]), at }] : [],
    ),
  );
}

function callOf(one: Row): ChargedCall {
  return { one, at: Number(one['at']), subjects: subjectsOf(one) };
}

/** Returns the subject that tags or end users beyond the maximum number are counted for. */
function others({ kind, values }: Subject): Subject {
  return { kind, values: [values[0] ?? 0, '', ...values.slice(2)] };
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
    startOf(one.start),
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
  const key = `${level} ${start} ${subject} ${names}`;
  let one = additions.get(key);
  if (one === undefined) {
    one = { level, start, subject, names, calls: 0, amounts: amounts.map(() => 0) };
    additions.set(key, one);
  }
  one.calls += 1;
  if (source === undefined) return;
  for (const [index, name] of amounts.entries())
    one.amounts[index] = (one.amounts[index] ?? 0) + Number(source[name]);
}
