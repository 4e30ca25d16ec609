/** Sums as a table, on the page and as a file. */
import { useMemo } from 'react';
import type { UsageSumsList } from '../../../admin/schemas/index.ts';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { addressOf } from '../parts/router.ts';
import { saveCsv } from '../parts/save-csv.ts';
import { brief, count, money, percent } from '../parts/text.ts';
import { titleOf, type GroupedBy, type Span } from './spend-query.ts';

type Sum = UsageSumsList['sums'][number];

/** A group with that of the period before. `before` is undefined where it is not known. */
interface Row {
  readonly sum: Sum;
  readonly before: Pick<Sum, 'calls' | 'microDollars'> | undefined;
}

const nothing = { calls: 0, microDollars: 0 };

/** The groups, each with what it was in the period before: known for all where that list leaves none out. */
function rowsOf({ sums, previous }: UsageSumsList): readonly Row[] {
  const earlier = new Map(previous?.sums.map((sum) => [sum.group, sum]));
  const isWhole = previous !== undefined && previous.sums.length < 200;
  return sums.map((sum) => ({ sum, before: earlier.get(sum.group) ?? (isWhole ? nothing : undefined) }));
}

/** Charge to budgets. */
export const chargedOf = (sum: Omit<Sum, 'group'>): number => sum.chargedMicroDollars ?? sum.microDollars;

const nameOf = ({ group, name }: Sum): string => name ?? (group === '' ? 'others' : String(group));

/** Comparison of a number with an earlier one. */
export function Change({
  now,
  before,
  isBad = false,
}: {
  readonly now: number;
  readonly before: number | undefined;
  /** True where more is worse. */
  readonly isBad?: boolean;
}) {
  if (before === undefined || (before === 0 && now === 0)) return <span className="muted">–</span>;
  if (before === 0) return <span className="muted">new</span>;
  const share = (now - before) / before;
  const text = `${share >= 0 ? '+' : '−'}${percent(Math.abs(now - before), before)}`;
  return <span className={isBad && share > 0 ? 'bad-text' : 'muted'}>{text}</span>;
}

/** Shows the sums; each group leads to its calls. */
export function SpendTable({
  by,
  list,
  span,
  narrowed,
}: {
  readonly by: GroupedBy;
  readonly list: UsageSumsList;
  readonly span: Span;
  readonly narrowed: Readonly<Record<string, string | undefined>>;
}) {
  const rows = useMemo(() => rowsOf(list), [list]);
  const isCharged = list.sums.some(({ chargedMicroDollars }) => chargedMicroDollars !== undefined);
  const columns = useMemo(
    () => columnsOf({ by, span, narrowed, isCharged, all: list.totals.microDollars }),
    [by, span, narrowed, isCharged, list],
  );
  return (
    <>
      <DataTable label="Sums" columns={columns} rows={rows} rowId={({ sum }) => String(sum.group)} />
      {list.rest !== undefined && (
        <div className="table-foot">
          {count(list.rest.groups)} more with {count(list.rest.calls)} calls, {money(list.rest.microDollars)}
          {isCharged && `, ${money(chargedOf(list.rest))} charged`}
        </div>
      )}
    </>
  );
}

/** Returns the column of a number. */
function number(
  id: string,
  title: string,
  value: (sum: Sum) => number | undefined,
  show: (value: number) => string,
  wide = true,
): Column<Row> {
  return {
    id,
    title,
    kind: 'number',
    wide,
    sortBy: ({ sum }) => value(sum),
    show: ({ sum }) => {
      const shown = value(sum);
      return shown === undefined ? (
        <span className="muted">–</span>
      ) : (
        <span className="nowrap">{show(shown)}</span>
      );
    },
  };
}

function columnsOf({
  by,
  span,
  narrowed,
  isCharged,
  all,
}: {
  readonly by: GroupedBy;
  readonly span: Span;
  readonly narrowed: Readonly<Record<string, string | undefined>>;
  readonly isCharged: boolean;
  readonly all: number;
}): readonly Column<Row>[] {
  const time = { from: new Date(span.since).toISOString(), to: new Date(span.until).toISOString() };
  return [
    {
      id: 'group',
      title: titleOf(by),
      sortBy: ({ sum }) => nameOf(sum).toLowerCase(),
      show: ({ sum }) =>
        sum.group === '' ? (
          <span className="muted">{by === 'tag' || by === 'endUser' ? 'others' : 'none'}</span>
        ) : (
          <a
            className="truncate"
            title={String(sum.group)}
            href={addressOf('usage', { ...narrowed, ...time, [by]: String(sum.group) })}
          >
            {nameOf(sum)}
          </a>
        ),
    },
    {
      id: 'cost',
      title: 'Cost',
      kind: 'number',
      sortBy: ({ sum }) => sum.microDollars,
      show: ({ sum }) => (
        <>
          <span className="nowrap">{money(sum.microDollars)}</span>
          <span className="sub nowrap">{percent(sum.microDollars, all)}</span>
        </>
      ),
    },
    ...(isCharged ? [number('charged', 'Charged', chargedOf, money, false)] : []),
    {
      id: 'change',
      title: 'Change',
      kind: 'number',
      sortBy: ({ sum, before }) => sum.microDollars - (before?.microDollars ?? 0),
      show: ({ sum, before }) => (
        <>
          <Change now={sum.microDollars} before={before?.microDollars} />
          <span className="sub nowrap wide">
            {before === undefined ? '' : `from ${money(before.microDollars)}`}
          </span>
        </>
      ),
    },
    number('calls', 'Calls', ({ calls }) => calls, brief, false),
    number('failed', 'Failed', ({ failed }) => failed, brief),
    number('refused', 'Refused', ({ refused }) => refused, brief),
    number('input', 'Tokens in', ({ input }) => input, brief),
    number('output', 'Tokens out', ({ output }) => output, brief),
  ];
}

/** Saves what the table shows, with its totals and all digits. */
export function saveTable(by: GroupedBy, { from, to, zone }: Span, list: UsageSumsList): void {
  const dollars = (microDollars: number | undefined): string | undefined =>
    microDollars === undefined ? undefined : (microDollars / 1e6).toFixed(6);
  const line = (
    name: string,
    group: string,
    sum: Omit<Sum, 'group'>,
    before: Row['before'],
  ): readonly (string | number | undefined)[] => [
    name,
    group,
    dollars(sum.microDollars),
    dollars(chargedOf(sum)),
    sum.calls,
    sum.failed,
    sum.refused,
    sum.input,
    sum.output,
    dollars(before?.microDollars),
    before?.calls,
  ];
  const { rest, totals, previous } = list;
  saveCsv(`spend-by-${by}-${from}-${to}.csv`, [
    [
      titleOf(by),
      'id',
      'cost in dollars',
      'charged in dollars',
      'calls',
      'failed',
      'refused',
      'tokens in',
      'tokens out',
      'cost before in dollars',
      'calls before',
      `${from} to ${to}, ${zone}`,
    ],
    ...rowsOf(list).map(({ sum, before }) => line(nameOf(sum), String(sum.group), sum, before)),
    ...(rest === undefined ? [] : [line(`${rest.groups} more`, '', rest, undefined)]),
    line('all calls', '', totals, previous?.totals),
  ]);
}
