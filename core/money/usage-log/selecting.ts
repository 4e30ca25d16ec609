/** Selects records of a filter, by the index that is asked for. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Database } from '../../state/database/index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import type { Candidates } from './candidates.ts';
import type { UsageFilter, UsageMeasure } from './index.ts';
import type { Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { recordOf } from './read-rows.ts';
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
  /** Where to look; default: the index of times. */
  readonly among?: Candidates | undefined;
}

/** Returns the records of a selection, in its order. */
export type Select = (selection: Selection) => Promise<readonly UsageRecord[]>;

/** Opens the selection of records. */
export function createSelect(ask: Ask, kind: Database['kind']): Select {
  return async (selection) => {
    const { sql, values } = selectionOf(selection, kind);
    return (await ask(sql, values)).map(recordOf);
  };
}

/** Returns the SELECT of a selection. */
export function selectionOf(
  { filter, limit, order, only, among }: Selection,
  kind: Database['kind'],
): Source {
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
  const { found, condition } = foundIn(among, kind);
  if (condition !== undefined) parts.push(condition.sql);
  return {
    // The limit comes before the join: details are fetched for what is shown alone.
    sql: `SELECT ${recordColumns} FROM
      (SELECT usage_calls.* FROM ${found.sql}usage_calls${found.sql === '' ? '' : ' ON at = in_at AND id = in_id'} WHERE ${parts.join(' AND ')} ORDER BY ${sorted('')} LIMIT ?) u
      LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY ${sorted('u.')}`,
    values: [...found.values, ...values, ...(only?.values ?? []), ...(condition?.values ?? []), limit],
  };
}

/** Says how candidates are found: SQLite has no statistics, so it takes the index that it is told and looks up what that finds. */
function foundIn(
  among: Candidates | undefined,
  kind: Database['kind'],
): { readonly found: Source; readonly condition?: Source } {
  const nothing = { sql: '', values: [] };
  if (among === undefined) return { found: nothing };
  const { oneOf, index } = among;
  const values = oneOf.flatMap((one) => one.values);
  if (kind === 'postgres')
    return {
      found: nothing,
      condition: { sql: `(${oneOf.map(({ sql }) => `(${sql})`).join(' OR ')})`, values },
    };
  const parts = oneOf.map(
    ({ sql }) => `SELECT at AS in_at, id AS in_id FROM usage_records INDEXED BY ${index} WHERE ${sql}`,
  );
  return { found: { sql: `(${parts.join(' UNION ALL ')}) AS found CROSS JOIN `, values } };
}
