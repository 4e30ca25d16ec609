/** Finds the indexes that have few entries for a filter. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { daysOf, type Candidates } from './candidate-entries.ts';
import type { UsageFilter } from './index.ts';
import { holds, type Source } from './narrowing.ts';
import { listSlice } from './questions.ts';
import type { Measured, RecordIndexes } from './record-indexes.ts';
import { ofSubjects } from './subject-candidates.ts';
import { subjectKinds, type SubjectKind } from './subjects.ts';

/** Maximum number of kinds, or of keys of an owner, that are looked up together. A filter of more of them is not rare. */
const mostKinds = 64;

const hour = 3_600_000;

/** Conditions of a filter's names for `usage_kinds`. */
const named = { model: 'model', channel: 'channel', format: 'format', operation: 'operation' } as const;

/** Returns what the indexes of the database offer for a filter. */
export async function offerFor(
  query: Query,
  kind: Database['kind'],
  indexes: RecordIndexes,
  filter: UsageFilter,
): Promise<readonly Candidates[]> {
  const offer: Candidates[] = [];
  if (kind === 'postgres') {
    const keys = filter.keyId === undefined ? await keysOf(query, filter) : undefined;
    if (filter.keyId !== undefined) offer.push(ofKey(filter.keyId));
    if (keys !== undefined) offer.push(ofKeys(keys, ownerOf(filter) ?? 'organisation'));
  }
  offer.push(...(await ofSubjects(kind, indexes, filter)));
  if (!(await indexes.areMade())) return offer;
  if (isOfFailures(filter)) offer.push(ofFailures(kind));
  const kinds = await kindsOf(query, filter);
  if (kinds !== undefined) offer.push(kind === 'sqlite' ? ofKindsInSqlite(kinds) : ofKinds(kinds));
  for (const by of ['ms', 'microDollars'] as const) {
    const found = indexes.measured(by, filter);
    if (found !== undefined) offer.push(ofMeasure(kind, found));
  }
  return offer;
}

/**
 * Returns the candidates that have the fewest entries for a stretch of time, where these are few enough to be read together, and how many they
 * are. `looks`: number of entries that were counted.
 */
export async function fewest(
  query: Query,
  offer: readonly Candidates[],
  since: number,
  until: number,
): Promise<{ readonly few?: Candidates; readonly count: number; readonly looks: number }> {
  if (offer.length === 0) return { count: 0, looks: 0 };
  const counted = offer.map((one) => one.select('1 AS one', since, until, listSlice + 1));
  const [row = {}] = await query(
    `SELECT ${counted.map(({ sql }, index) => `(SELECT COUNT(*) FROM (${sql}) AS found) AS c${index}`).join(', ')}`,
    counted.flatMap(({ values }) => values),
  );
  const counts = offer.map((_, index) => Number(row[`c${index}`]));
  const count = Math.min(...counts);
  const few = offer[counts.indexOf(count)];
  return {
    count,
    looks: counts.reduce((sum, one) => sum + one, 0),
    ...(few !== undefined && count <= listSlice && { few }),
  };
}

/** All records of a time; SQLite has them in its order without an index. */
export const ofTime: Candidates = {
  isOrdered: true,
  by: 'names',
  select: (columns, since, until, limit) => ({
    sql: `SELECT ${columns} FROM usage_records WHERE at >= ? AND at < ? ORDER BY at DESC LIMIT ?`,
    values: [since, until, limit],
  }),
};

/** The SELECT of the records of a key, whose id `key` stands for. Only one index has rows in such an order. */
function recordsOf(key: Source, columns: string, since: number, until: number, limit: number): Source {
  // As the index has it; a whole id would make the index three times as large.
  const row = '(hashtext(key_id), at)';
  return {
    sql: `SELECT ${columns} FROM usage_records
      WHERE ${row} >= (hashtext(${key.sql}), ?) AND ${row} < (hashtext(${key.sql}), ?) AND at >= ? AND at < ?
      ORDER BY hashtext(key_id) DESC, at DESC LIMIT ?`,
    values: [...key.values, since, ...key.values, until, ...daysOf(since, until), limit],
  };
}

/** The records of a key, which an index of PostgreSQL finds. */
export function ofKey(keyId: string): Candidates {
  return {
    isOrdered: true,
    by: 'key',
    select: (...asked) => recordsOf({ sql: '?', values: [keyId] }, ...asked),
  };
}

/** The records of keys that have the same owner, one key after the other. */
function ofKeys(keyIds: readonly string[], subject: SubjectKind): Candidates {
  return {
    isOrdered: false,
    by: 'owner',
    subject,
    select(columns, since, until, limit) {
      const { sql, values } = recordsOf({ sql: 'keys.id', values: [] }, columns, since, until, limit);
      return {
        sql: `SELECT found.* FROM json_array_elements_text(CAST(? AS json)) AS keys (id) CROSS JOIN LATERAL (${sql}) AS found LIMIT ?`,
        values: [JSON.stringify(keyIds), ...values, limit],
      };
    },
  };
}

/** Failures have an index of their own, in the order of time. */
const ofFailures = (kind: Database['kind']): Candidates => ({
  isOrdered: true,
  by: 'names',
  select: (columns, since, until, limit) => ({
    sql: `SELECT ${columns} FROM usage_records${kind === 'sqlite' ? ' INDEXED BY usage_records_failures' : ''}
      WHERE status >= 400 AND at >= ? AND at < ? ORDER BY at DESC LIMIT ?`,
    values: [since, until, limit],
  }),
});

/** The records of a range of durations or costs. Those of other times are among them, because no index tells both. */
function ofMeasure(kind: Database['kind'], { sql, values, index, column }: Measured): Candidates {
  return {
    isOrdered: false,
    by: 'measure',
    select: (columns, since, until, limit) =>
      kind === 'sqlite'
        ? {
            sql: `SELECT ${columns} FROM
              (SELECT at AS in_at, id AS in_id FROM usage_records INDEXED BY ${index} WHERE ${sql} ORDER BY ${column} DESC LIMIT ?) AS found
              CROSS JOIN usage_records ON at = in_at AND id = in_id`,
            values: [...values, limit],
          }
        : {
            sql: `SELECT ${columns} FROM usage_records WHERE ${sql} AND at >= ? AND at < ? ORDER BY ${column} DESC LIMIT ?`,
            values: [...values, ...daysOf(since, until), limit],
          },
  };
}

/** Rows that have their names themselves may fit as well. */
function ofKindsInSqlite(kinds: readonly number[]): Candidates {
  const of = (condition: string): string =>
    `SELECT * FROM usage_records INDEXED BY usage_records_kind WHERE ${condition} AND at >= ? AND at < ?`;
  const parts = [
    ...(kinds.length === 0 ? [] : [of(`kind IN (${kinds.map(() => '?').join(', ')})`)]),
    of('kind IS NULL'),
  ];
  return {
    isOrdered: false,
    by: 'names',
    select: (columns, since, until, limit) => ({
      sql: `SELECT ${columns} FROM (${parts.join(' UNION ALL ')}) LIMIT ?`,
      values: [...(kinds.length === 0 ? [] : [...kinds, since, until]), since, until, limit],
    }),
  };
}

/** As the index has them: by kind and hour. One kind after the other, because the hours of one are in order. */
function ofKinds(kinds: readonly number[]): Candidates {
  return {
    isOrdered: false,
    by: 'names',
    select(columns, since, until, limit) {
      const hours = [since, until - 1].map((at) => Math.floor(at / hour));
      const of = (condition: string): string =>
        `(SELECT ${columns} FROM usage_records WHERE kind ${condition} AND at / ${hour} BETWEEN ? AND ? AND at >= ? AND at < ?
          ORDER BY at / ${hour} DESC LIMIT ?)`;
      const values = [...hours, ...daysOf(since, until), limit];
      return {
        sql: `(SELECT found.* FROM unnest(CAST(? AS BIGINT[])) AS kinds (id) CROSS JOIN LATERAL ${of('= kinds.id')} AS found LIMIT ?)
          UNION ALL ${of('IS NULL')}`,
        values: [`{${kinds.join(',')}}`, ...values, limit, ...values],
      };
    },
  };
}

/** The narrowest owner that a filter names. */
function ownerOf({
  team,
  member,
  organisation,
}: UsageFilter): 'team' | 'member' | 'organisation' | undefined {
  if (member !== undefined) return 'member';
  if (team !== undefined) return 'team';
  return organisation === undefined ? undefined : 'organisation';
}

/**
 * The keys that calls of a team, a member or an organisation came with, whether these are in the sums or not; undefined where they are many, and
 * where some calls came without a key.
 */
async function keysOf(query: Query, filter: UsageFilter): Promise<readonly string[] | undefined> {
  const column = ownerOf(filter);
  const owner = column && filter[column];
  if (owner === undefined) return undefined;
  const found = await query(
    `SELECT key_id FROM usage_subjects WHERE kind = ${subjectKinds.bearer} AND ${column} = ?
     UNION SELECT u.key_id FROM usage_unsummed_owned u JOIN usage_owners o ON o.id = u.owners WHERE o.${column} = ? LIMIT ?`,
    [owner, owner, mostKinds + 1],
  );
  const keys = found.map(({ key_id: keyId }) => (typeof keyId === 'string' ? keyId : ''));
  return keys.length > mostKinds || keys.includes('') ? undefined : keys;
}

/** The kinds with the names of a filter; undefined where it has none, or where they are many. */
async function kindsOf(query: Query, filter: UsageFilter): Promise<readonly number[] | undefined> {
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
  const found = await query(`SELECT id FROM usage_kinds WHERE ${parts.join(' AND ')} LIMIT ?`, [
    ...values,
    mostKinds + 1,
  ]);
  return found.length > mostKinds ? undefined : found.map(({ id }) => Number(id));
}

function isOfFailures({ status = 0, statusClass = 0, outcome }: UsageFilter): boolean {
  return status >= 400 || statusClass >= 4 || outcome === 'refused';
}
