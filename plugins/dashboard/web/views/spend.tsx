/** Sums calls and cost by owner, key, tag, end user, model or channel, and compares them with the period before. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { UsageSumsList } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Chart, Legend, type Series } from '../parts/chart.tsx';
import { Icon } from '../parts/icons.tsx';
import { useRoute } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { brief, exactly, money } from '../parts/text.ts';
import { asWallClock, clockIn } from '../parts/zone-time.ts';
import { SpendFilters } from './spend-filters.tsx';
import { groupingOf, spanOf, type Span } from './spend-query.ts';
import { Change, saveTable, SpendTable } from './spend-table.tsx';

const hour = 3_600_000;

/** Usage by team, member, organisation, key, tag, end user, model or channel. */
export function Spend() {
  const { query } = useRoute();
  // The end stays where it was while the filter stays, so that the parts of the page fit together.
  const span = useMemo(() => spanOf(query, Date.now()), [query]);
  const by = groupingOf(query);
  const narrowed = narrowingOf(query);
  const filter = { ...narrowed, since: String(span.since), until: String(span.until), zone: span.zone };
  const sums = useQuery({
    queryKey: ['spend', by, filter],
    queryFn: () => api.sums({ ...filter, by, compare: 'previous', limit: '200' }),
    placeholderData: keepPreviousData,
  });
  const isFine = span.until - span.since <= 48 * hour;
  const series = useQuery({
    queryKey: ['spend-series', filter, isFine],
    queryFn: () =>
      api.sums({ ...filter, ...(isFine ? { by: 'time', bucket: String(hour) } : { by: 'day' }) }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <header>
        <h1>Spend</h1>
        <div className="actions">
          <button
            type="button"
            className="button"
            disabled={sums.data === undefined}
            onClick={() => sums.data !== undefined && saveTable(by, span, sums.data)}
          >
            <Icon name="download" />
            CSV
          </button>
        </div>
      </header>
      <div className="card">
        <SpendFilters query={query} span={span} />
      </div>
      <Await query={sums} what="the sums">
        {(list) => (
          <>
            <Notes list={list} days={series.data} />
            <Totals list={list} span={span} />
            {list.totals.calls === 0 ? (
              <div className="card">
                <Empty title="No calls in this time" />
              </div>
            ) : (
              <>
                {series.data !== undefined && <Over series={series.data} span={span} isFine={isFine} />}
                <div className="card">
                  <SpendTable by={by} list={list} span={span} narrowed={narrowed} />
                </div>
                <p className="muted small">
                  {list.previous !== undefined &&
                    `Compared with ${clockIn(span.zone, list.previous.since)} to ${clockIn(span.zone, list.previous.until)}. `}
                  {list.sums.some(({ chargedMicroDollars }) => chargedMicroDollars !== undefined) &&
                    'Charged is what price rules took from budgets at the time of each call.'}
                </p>
              </>
            )}
          </>
        )}
      </Await>
    </>
  );
}

/** Members of the API's filter that the address may have. */
const filters = ['team', 'member', 'organisation', 'tag', 'endUser', 'model', 'channel', 'keyId'] as const;

function narrowingOf(query: URLSearchParams): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(filters.map((name) => [name, query.get(name) || undefined]));
}

/** Limits of the sums that are shown. */
function Notes({ list, days }: { readonly list: UsageSumsList; readonly days: UsageSumsList | undefined }) {
  return (
    <>
      {list.incompleteBefore !== undefined && (
        <p className="notice" role="status">
          Calls before {exactly(list.incompleteBefore)} are still being added up after an upgrade.
        </p>
      )}
      {days?.exact === false && (
        <p className="notice" role="status">
          Days of this time zone begin within an hour: calls of that hour count for the day before or after.
        </p>
      )}
    </>
  );
}

function Totals({ list, span }: { readonly list: UsageSumsList; readonly span: Span }) {
  const { totals, previous } = list;
  const before = previous?.totals;
  const tiles = [
    ['Cost', money(totals.microDollars), totals.microDollars, before?.microDollars],
    ['Calls', brief(totals.calls), totals.calls, before?.calls],
    ['Failed', brief(totals.failed), totals.failed, before?.failed],
    ['Refused', brief(totals.refused), totals.refused, before?.refused],
    [
      'Tokens',
      brief(totals.input + totals.output),
      totals.input + totals.output,
      before && before.input + before.output,
    ],
  ] as const;
  return (
    <section className="grid four" aria-label={`Totals, ${span.zone}`}>
      {tiles.map(([label, shown, now, earlier]) => (
        <div key={label} className="card tile">
          <span className="label">{label}</span>
          <span className="value">{shown}</span>
          <span className="hint">
            {earlier === 0 ? (
              'none in the period before'
            ) : (
              <>
                <Change now={now} before={earlier} isBad={label === 'Failed' || label === 'Refused'} /> to the
                period before
              </>
            )}
          </span>
        </div>
      ))}
    </section>
  );
}

function Over({
  series,
  span,
  isFine,
}: {
  readonly series: UsageSumsList;
  readonly span: Span;
  readonly isFine: boolean;
}) {
  const { times, cost, calls } = useMemo(() => seriesOf(series, span, isFine), [series, span, isFine]);
  return (
    <section className="grid two" aria-label="Over time">
      {(
        [
          ['Cost', cost, money],
          ['Calls', calls, brief],
        ] as const
      ).map(([title, lines, show]) => (
        <div key={title} className="card">
          <header>
            <h2>{title}</h2>
            {lines.length > 1 && <Legend series={lines} />}
            <span className="aside">{isFine ? 'by hour' : 'by day'}</span>
          </header>
          <div className="body">
            <Chart label={`${title} over time`} times={times} series={lines} show={show} />
          </div>
        </div>
      ))}
    </section>
  );
}

/** Buckets without calls are not in the data, and are nothing. */
function seriesOf(list: UsageSumsList, { since, until, zone }: Span, isFine: boolean) {
  const found = new Map(list.sums.map((sum) => [Number(sum.group), sum]));
  const width = isFine ? hour : 24 * hour;
  const starts: number[] = [];
  if (isFine) for (let at = Math.floor(since / width) * width; at < until; at += width) starts.push(at);
  else {
    // Days of a zone are not all of one length: those that have calls are known, the others are filled in.
    const known = [...found.keys()].toSorted((one, other) => one - other);
    let next = since;
    for (const start of [...known, until]) {
      for (; start - next > width * 0.6; next += width) starts.push(next);
      if (start < until) starts.push(start);
      next = start + width;
    }
  }
  const take = (value: (sum: UsageSumsList['sums'][number]) => number): number[] =>
    starts.map((start) => {
      const sum = found.get(start);
      return sum === undefined ? 0 : value(sum);
    });
  const line = (label: string, colour: string, value: Parameters<typeof take>[0]): Series => ({
    label,
    colour,
    kind: 'columns',
    values: take(value),
  });
  return {
    times: starts.map((start) => asWallClock(zone, start) / 1_000),
    cost: [line('cost', '--accent', ({ microDollars }) => microDollars)],
    calls: [
      line('all', '--accent', ({ calls }) => calls),
      line('refused', '--warn', ({ refused, failed }) => refused + failed),
      line('failed', '--bad', ({ failed }) => failed),
    ],
  };
}
