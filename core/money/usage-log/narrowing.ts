/** Conditions of a filter's members that sums are made by. */
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

/** True for calls that were refused. `table`: what stands before the columns. Rows without names have such a status and no channel, too. */
export const isRefused = (table = ''): string =>
  `(${table}failed = 1 AND ${table}channel = '' AND ${table}status BETWEEN 400 AND 498)`;

const outcomes = {
  ok: (table: string) => `${table}failed = 0`,
  failed: (table: string) => `(${table}failed = 1 AND NOT ${isRefused(table)})`,
  refused: isRefused,
} as const;

/** Members of a filter by which sums without names cannot be narrowed. */
export const namedMembers = [
  'model',
  'modelPart',
  'channel',
  'format',
  'operation',
  'status',
  'statusClass',
] as const;

/** Conditions of the members that sums are made by, each with an AND before it. `table`: what stands before the columns. */
export function narrowing(filter: UsageFilter, table = ''): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const [member, column] of Object.entries(equal)) {
    const value = filter[member as keyof typeof equal];
    if (value === undefined) continue;
    parts.push(` AND ${table}${column} = ?`);
    values.push(value);
  }
  if (filter.modelPart !== undefined && filter.modelPart !== '') {
    parts.push(` AND ${holds(`lower(${table}model)`)}`);
    values.push(filter.modelPart.toLowerCase());
  }
  if (filter.statusClass !== undefined) parts.push(` AND ${ofClass(`${table}status`, filter.statusClass)}`);
  if (filter.outcome !== undefined) parts.push(` AND ${outcomes[filter.outcome](table)}`);
  return { sql: parts.join(''), values };
}

/** A condition that a text holds another. Both databases know it, and no character has a meaning of its own. */
export const holds = (text: string): string => `replace(${text}, ?, '') <> ${text}`;

/** A condition that a status begins with a digit. */
export const ofClass = (column: string, digit: number): string =>
  `${column} BETWEEN ${Math.trunc(digit) * 100} AND ${Math.trunc(digit) * 100 + 99}`;

const owned = {
  team: 'team',
  member: 'member',
  organisation: 'organisation',
  endUser: 'end_user',
} as const;

/** Members of a filter that say whom a call belongs to. */
export const ownedMembers = ['team', 'member', 'organisation', 'tag', 'endUser'] as const;

/** Conditions of these members for rows of records, each with an AND before it. */
export function ownedNarrowing(filter: UsageFilter, table = ''): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const [member, column] of Object.entries(owned)) {
    const value = filter[member as keyof typeof owned];
    if (value === undefined) continue;
    parts.push(` AND ${table}${column} = ?`);
    values.push(value);
  }
  if (filter.tag !== undefined) {
    // Texts of JSON have quotes around them, and none inside without a backslash.
    parts.push(` AND ${holds(`${table}tags`)}`);
    values.push(JSON.stringify(filter.tag));
  }
  return { sql: parts.join(''), values };
}
