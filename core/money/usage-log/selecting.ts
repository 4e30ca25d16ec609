/** Selects records of a filter. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageFilter, UsageMeasure } from './index.ts';
import type { Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { recordOf, rowsOf } from './read-rows.ts';
import { recordColumns } from './rows.ts';

/** Columns of `usage_records` that records are sorted by. */
export const measureColumns: Readonly<Record<UsageMeasure, 'ms' | 'micro_dollars'>> = {
  ms: 'ms',
  microDollars: 'micro_dollars',
};

/** Which records are selected. */
export interface Selection {
  readonly filter: UsageFilter;
  readonly limit: number;
  /** Default: by time, newest first. */
  readonly order?: UsageMeasure | 'oldest';
  /** A further condition. */
  readonly only?: Source;
}

/** Returns the records of a selection, in its order. */
export type Select = (selection: Selection) => Promise<readonly UsageRecord[]>;

/** Opens the selection of records. */
export function createSelect(query: Query, kind: Database['kind']): Select {
  return async (selection) => {
    const { sql, values } = selectionOf(selection);
    return (await rowsOf(query, kind, sql, values)).map(recordOf);
  };
}

/** Returns the SELECT of a selection. */
function selectionOf({ filter, limit, order, only }: Selection): Source {
  const { where, values } = conditions(filter);
  const isAscending = order === 'oldest';
  const column = order === undefined || isAscending ? undefined : measureColumns[order];
  const sorted = (table: string): string => {
    const direction = isAscending ? 'ASC' : 'DESC';
    const names = [...(column === undefined ? [] : [column]), 'at', 'id'];
    return names.map((name) => `${table}${name} ${direction}`).join(', ');
  };
  const parts = [
    where === '' ? 'TRUE' : where.slice('WHERE '.length),
    ...(only === undefined ? [] : [only.sql]),
    ...(column === undefined ? [] : [`${column} IS NOT NULL`]),
  ];
  return {
    // The limit comes before the join: details are fetched for what is shown alone.
    sql: `SELECT ${recordColumns} FROM
      (SELECT usage_calls.* FROM usage_calls WHERE ${parts.join(' AND ')} ORDER BY ${sorted('')} LIMIT ?) u
      LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY ${sorted('u.')}`,
    values: [...values, ...(only?.values ?? []), limit],
  };
}
