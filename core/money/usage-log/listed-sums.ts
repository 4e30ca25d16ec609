/** Runs the statements of a question about sums, and lists the first groups and what is left. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageSums, UsageSumsList, UsageTotals } from './index.ts';
import type { Source } from './narrowing.ts';
import { rowsOf, type Row } from './read-rows.ts';
import type { Group } from './sums-grouping.ts';
import type { Listed } from './sums-statement.ts';

/** Thrown when folds of a query were removed while it ran. */
export class FoldsGone extends Error {}

/** Runs statements that list different groups each, and returns the first of all groups together. */
export async function listOf(
  query: Query,
  kind: Database['kind'],
  statements: readonly Source[],
  { bucket, isNumber }: Pick<Group, 'bucket' | 'isNumber'>,
  { order, used, limit }: Listed,
): Promise<UsageSumsList> {
  const rows = (
    await Promise.all(statements.map(({ sql, values }) => rowsOf(query, kind, sql, values)))
  ).flat();
  if (rows.some(({ folds }) => Number(folds) !== used.length)) throw new FoldsGone();
  const listed: UsageSums[] = [];
  const all: NonNullable<UsageSumsList['rest']>[] = [];
  for (const row of rows) {
    if (Number(row['listed']) === 1)
      listed.push({ group: isNumber ? Number(row['name']) : String(row['name'] ?? ''), ...totalsOf(row) });
    else all.push({ groups: Number(row['groups']), ...totalsOf(row) });
  }
  const sums =
    bucket === undefined
      ? listed.toSorted(byOrder(order)).slice(0, limit)
      : listed.toSorted((a, b) => Number(a.group) - Number(b.group));
  const whole = together(all);
  const rest = whole === undefined || whole.groups <= sums.length ? undefined : without(whole, sums);
  return { sums, ...(rest === undefined ? {} : { rest }) };
}

/** Adds up the totals of all groups of several statements. */
function together(all: readonly NonNullable<UsageSumsList['rest']>[]): UsageSumsList['rest'] {
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return first;
  const sum = (of: (one: NonNullable<UsageSumsList['rest']>) => number): number =>
    all.reduce((total, one) => total + of(one), 0);
  const whole = {
    groups: sum((one) => one.groups),
    calls: sum((one) => one.calls),
    failed: sum((one) => one.failed),
    refused: sum((one) => one.refused),
    input: sum((one) => one.input),
    output: sum((one) => one.output),
    microDollars: sum((one) => one.microDollars),
  };
  if (all.every((one) => one.chargedMicroDollars === undefined)) return whole;
  return { ...whole, chargedMicroDollars: sum((one) => one.chargedMicroDollars ?? one.microDollars) };
}

/** Returns the totals of all groups minus those that are listed. */
function without(
  all: NonNullable<UsageSumsList['rest']>,
  listed: readonly UsageSums[],
): NonNullable<UsageSumsList['rest']> {
  const { chargedMicroDollars, ...others } = all;
  const left = { ...others, groups: all.groups - listed.length };
  // Never below zero, because numbers of providers may be too large to be exact.
  for (const { calls, failed, refused, input, output, microDollars } of listed) {
    left.calls = Math.max(0, left.calls - calls);
    left.failed = Math.max(0, left.failed - failed);
    left.refused = Math.max(0, left.refused - refused);
    left.input = Math.max(0, left.input - input);
    left.output = Math.max(0, left.output - output);
    left.microDollars = Math.max(0, left.microDollars - microDollars);
  }
  const ofListed = listed.reduce((sum, one) => sum + (one.chargedMicroDollars ?? one.microDollars), 0);
  const charged = Math.max(0, (chargedMicroDollars ?? all.microDollars) - ofListed);
  if (charged !== left.microDollars) return { ...left, chargedMicroDollars: charged };
  return left;
}

function byOrder(order: 'cost' | 'calls'): (one: UsageSums, other: UsageSums) => number {
  const [first, second] =
    order === 'cost' ? (['microDollars', 'calls'] as const) : (['calls', 'microDollars'] as const);
  return (one, other) => other[first] - one[first] || other[second] - one[second];
}

function totalsOf(row: Row): UsageTotals {
  const microDollars = Number(row['micro_dollars'] ?? 0);
  const more = Number(row['charged_more'] ?? 0);
  return {
    calls: Number(row['calls']),
    failed: Number(row['failed']),
    refused: Number(row['refused']),
    input: Number(row['input']),
    output: Number(row['output']),
    microDollars,
    ...(more === 0 ? {} : { chargedMicroDollars: microDollars + more }),
  };
}
