/** Finds the index that has few entries for a filter. */
import type { Database } from '../../state/database/index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import type { UsageFilter } from './index.ts';
import { holds, type Source } from './narrowing.ts';
import { slice } from './questions.ts';
import type { RecordIndexes } from './record-indexes.ts';

/** Records that an index finds: all that fit a filter are among them. */
export interface Candidates {
  /** Conditions of `usage_records`, of which one holds. */
  readonly oneOf: readonly Source[];
  /** Its name in SQLite. */
  readonly index: string;
}

/** Maximum number of kinds that are looked up together. A filter of more of them is not rare. */
const mostKinds = 64;

const hour = 3_600_000;

/** Conditions of a filter's names for `usage_kinds`. */
const named = { model: 'model', channel: 'channel', format: 'format', operation: 'operation' } as const;

/** What the indexes offer for the filter of one question. */
export interface Offer {
  /** Returns the candidates of a stretch of time if they are few enough to be read together: those of the index that has the fewest. */
  few(since: number, until: number): Promise<(Candidates & { readonly count: number }) | undefined>;
}

/** A condition that an index serves, before its time is known. */
type Within = (since: number, until: number) => Candidates;

/** Returns what the indexes of the database offer for a filter; undefined where they offer nothing. */
export async function offerFor(
  ask: Ask,
  kind: Database['kind'],
  indexes: RecordIndexes,
  filter: UsageFilter,
): Promise<Offer | undefined> {
  const within: Within[] = [];
  if (filter.keyId !== undefined && kind === 'postgres') within.push(ofKey(filter.keyId));
  if (await indexes.areMade()) {
    const kinds = await kindsOf(ask, filter);
    if (kinds !== undefined) within.push(ofKinds(kinds, kind));
    if (isOfFailures(filter)) within.push(ofFailures);
    for (const by of ['ms', 'microDollars'] as const) {
      const found = indexes.measured(by, filter);
      if (found !== undefined)
        within.push((since, until) => ({ oneOf: [timed(found, since, until)], index: found.index }));
    }
  }
  if (within.length === 0) return undefined;
  return {
    async few(since, until) {
      const found: (Candidates & { readonly count: number })[] = [];
      for (const one of within) {
        const candidates = one(since, until);
        const count = await countOf(ask, kind, candidates);
        if (count <= slice) found.push({ ...candidates, count });
      }
      return found.toSorted((one, other) => one.count - other.count)[0];
    },
  };
}

/** Counts candidates, up to one more than are read together. */
async function countOf(ask: Ask, kind: Database['kind'], { oneOf, index }: Candidates): Promise<number> {
  const hint = kind === 'sqlite' ? ` INDEXED BY ${index}` : '';
  // One by one: a server would look up all that several have before it counts.
  const counts = oneOf.map(
    ({ sql }) => `SELECT * FROM (SELECT 1 AS one FROM usage_records${hint} WHERE ${sql} LIMIT ?) AS found`,
  );
  const [row] = await ask(
    `SELECT COUNT(*) AS count FROM (${counts.join(' UNION ALL ')}) AS candidates`,
    oneOf.flatMap(({ values }) => [...values, slice + 1]),
  );
  return Number(row?.['count']);
}

function timed({ sql, values }: Source, since: number, until: number): Source {
  return { sql: `${sql} AND at >= ? AND at < ?`, values: [...values, since, until] };
}

/** The records of a key, which an index of PostgreSQL finds. */
export function ofKey(keyId: string): Within {
  // As the index has it; a whole id would make the index three times as large.
  const source = { sql: 'hashtext(key_id) = hashtext(?)', values: [keyId] };
  return (since, until) => ({ oneOf: [timed(source, since, until)], index: '' });
}

const ofFailures: Within = (since, until) => ({
  oneOf: [timed({ sql: 'status >= 400', values: [] }, since, until)],
  index: 'usage_records_failures',
});

/** Rows that have their names themselves may fit as well. */
function ofKinds(kinds: readonly number[], kind: Database['kind']): Within {
  const ofAny = kinds.map((): string => '?').join(', ');
  return (since, until) => {
    const hours =
      kind === 'sqlite'
        ? { sql: '', values: [] }
        : {
            sql: ` AND at / ${hour} BETWEEN ? AND ?`,
            values: [since, until].map((at) => Math.floor(at / hour)),
          };
    const one = (sql: string, values: readonly number[]): Source =>
      timed({ sql: sql + hours.sql, values: [...values, ...hours.values] }, since, until);
    return {
      oneOf: [...(kinds.length === 0 ? [] : [one(`kind IN (${ofAny})`, kinds)]), one('kind IS NULL', [])],
      index: 'usage_records_kind',
    };
  };
}

/** The kinds with the names of a filter; undefined where it has none, or where they are many. */
async function kindsOf(ask: Ask, filter: UsageFilter): Promise<readonly number[] | undefined> {
  const parts: string[] = [];
  const values: string[] = [];
  for (const [member, column] of Object.entries(named)) {
    const value = filter[member as keyof typeof named];
    if (value === undefined) continue;
    parts.push(`${column} = ?`);
    values.push(value);
  }
  if (filter.modelPart !== undefined && filter.modelPart !== '') {
    parts.push(holds('lower(model)'));
    values.push(filter.modelPart.toLowerCase());
  }
  if (parts.length === 0) return undefined;
  const found = await ask(`SELECT id FROM usage_kinds WHERE ${parts.join(' AND ')} LIMIT ?`, [
    ...values,
    mostKinds + 1,
  ]);
  return found.length > mostKinds ? undefined : found.map(({ id }) => Number(id));
}

function isOfFailures({ status = 0, statusClass = 0, outcome }: UsageFilter): boolean {
  return status >= 400 || statusClass >= 4 || outcome === 'refused';
}
