/** Reads so many entries of an index, and their records that fit a filter, in one statement. */
import type { UsageRecord } from '../../model/usage-record.ts';
import { kindColumns, ofKind, ownColumns } from '../../state/database/tables/usage-log.ts';
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageFilter } from './index.ts';
import type { Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { recordOf, rowsOf } from './read-rows.ts';
import { recordColumns } from './rows.ts';

/** Which entries are read, and which of their records are returned. */
export interface EntriesQuery {
  /** A SELECT of all columns of records with a limit of `looks` and one more. */
  readonly entries: Source;
  readonly looks: number;
  /** The column by which the entries are in order, the largest first; undefined where they are in none. */
  readonly edge: Column | undefined;
  readonly filter: UsageFilter;
  /** A further condition. */
  readonly only?: Source | undefined;
  /** The columns before id by which records are sorted, the largest first. */
  readonly order: readonly Column[];
  readonly limit: number;
}

type Column = 'at' | 'ms' | 'micro_dollars';

/** The entries that were read. */
export interface Entries {
  /** The records of the filter among them: where there are more entries than `looks`, only those before the last value. */
  readonly records: readonly UsageRecord[];
  /** Number of entries: `looks` and one more where there are further ones. */
  readonly count: number;
  /** The last and the first value of the column by which the entries are in order. */
  readonly least: number;
  readonly greatest: number;
}

/** Returns calls, as the view `usage_calls` has them, of records that another SELECT gives. */
function callsOf(records: string): string {
  const names = kindColumns.map((name) => `${ofKind('e.', name)} AS ${name}`).join(', ');
  return `SELECT ${ownColumns.map((name) => `e.${name}`).join(', ')}, ${names}, k.price, o.team, o.member, o.organisation, e.tags, e.end_user, e.kind
    FROM (${records}) AS e LEFT JOIN usage_kinds k ON k.id = e.kind LEFT JOIN usage_owners o ON o.id = e.owners`;
}

/**
 * Reads entries. The rest of the filter is kept out of their SELECT, because a server might choose another index for it and read more than
 * the entries.
 */
export async function readEntries(
  query: Query,
  kind: Database['kind'],
  wanted: EntriesQuery,
): Promise<Entries> {
  const { entries, looks, edge, filter, only, order, limit } = wanted;
  const { where, values } = conditions(filter);
  const sorted = (table: string): string => [...order, 'id'].map((name) => `${table}${name} DESC`).join(', ');
  const edges =
    edge === undefined ? '0 AS least, 0 AS greatest' : `MIN(${edge}) AS least, MAX(${edge}) AS greatest`;
  const isRead = `((SELECT entries FROM edges) <= ?${edge === undefined ? '' : ` OR ${edge} > (SELECT least FROM edges)`})`;
  const parts = [
    where === '' ? 'TRUE' : where.slice('WHERE '.length),
    isRead,
    ...(only === undefined ? [] : [only.sql]),
  ];
  const rows = await rowsOf(
    query,
    kind,
    `WITH entries AS MATERIALIZED (${entries.sql}),
       edges AS MATERIALIZED (SELECT COUNT(*) AS entries, ${edges} FROM entries)
     SELECT edges.*, ${recordColumns} FROM edges LEFT JOIN (
       SELECT * FROM (${callsOf('SELECT * FROM entries')}) AS calls WHERE ${parts.join(' AND ')} ORDER BY ${sorted('')} LIMIT ?
     ) AS u ON TRUE LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY ${sorted('u.')}`,
    [...entries.values, ...values, looks, ...(only?.values ?? []), limit],
  );
  const number = (name: string): number => Number(rows[0]?.[name] ?? 0);
  return {
    records: rows.filter(({ id }) => id !== null).map(recordOf),
    count: number('entries'),
    least: number('least'),
    greatest: number('greatest'),
  };
}
