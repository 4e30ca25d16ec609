import type { UsageFilter } from './index.ts';

/** A part of a statement, with what stands for its question marks. */
export interface Source {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

const equal = {
  keyId: 'key_id',
  model: 'model',
  channel: 'channel',
  format: 'format',
  operation: 'operation',
  status: 'status',
} as const;

/** Conditions of the members that sums are told apart by, each with an AND before it. `table`: what stands before the columns. */
export function narrowing(filter: UsageFilter, table = ''): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const [member, column] of Object.entries(equal)) {
    const value = filter[member as keyof typeof equal];
    if (value === undefined) continue;
    parts.push(` AND ${table}${column} = ?`);
    values.push(value);
  }
  if (filter.outcome !== undefined)
    parts.push(` AND ${table}failed = ${filter.outcome === 'failed' ? 1 : 0}`);
  return { sql: parts.join(''), values };
}
