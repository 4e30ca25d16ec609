import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { Overview as OverviewData, OverviewRange, UsageSumsView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Chart, Legend, type Series } from '../parts/chart.tsx';
import { Segments } from '../parts/fields.tsx';
import { addressOf, changeQuery, useRoute } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { brief, count, duration, exactly, money, percent } from '../parts/text.ts';

const ranges: readonly (readonly [OverviewRange, string])[] = [
  ['1h', '1 h'],
  ['24h', '24 h'],
  ['7d', '7 d'],
  ['30d', '30 d'],
];

/** Traffic, cost, failures and how long things take. */
export function Overview() {
  const { query } = useRoute();
  const range = ranges.find(([name]) => name === query.get('range'))?.[0] ?? '24h';
  const overview = useQuery({
    queryKey: ['overview', range],
    queryFn: () => api.overview(range),
    refetchInterval: range === '1h' ? 5_000 : 15_000,
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <header>
        <h1>Overview</h1>
        <div className="actions">
          <Segments
            label="Time range"
            options={ranges}
            value={range}
            onChange={(next) => changeQuery({ range: next })}
          />
        </div>
      </header>
      <Await query={overview} what="the overview">
        {(data) => <Numbers data={data} range={range} />}
      </Await>
    </>
  );
}

function Numbers({ data, range }: { readonly data: OverviewData; readonly range: OverviewRange }) {
  const { totals, running, health } = data;
  return (
    <>
      <Health health={health} />
      {data.incompleteBefore !== undefined && data.incompleteBefore > data.since && (
        <p className="notice" role="status">
          Calls before {exactly(data.incompleteBefore)} are still being added up after an upgrade.
        </p>
      )}
      <section className="grid four" aria-label="Totals">
        <Tile label="Calls" value={brief(totals.calls)} hint={`${count(running)} running now`} />
        <Tile
          label="Failed"
          value={percent(totals.failed, totals.calls)}
          hint={`${count(totals.failed)} of ${count(totals.calls)}${totals.refused === 0 ? '' : `, ${count(totals.refused)} refused besides`}`}
        />
        <Tile
          label="Cost"
          value={money(totals.microDollars)}
          hint={totals.calls === 0 ? '' : `${money(totals.microDollars / totals.calls)} per call`}
        />
        <Tile label="Tokens in" value={brief(totals.input)} hint="cached ones included" />
        <Tile label="Tokens out" value={brief(totals.output)} hint="reasoning included" />
      </section>
      {totals.calls === 0 ? (
        <div className="card">
          <Empty title="No calls in this time">
            <p>
              Make an API key under <a href="#/keys">API keys</a>, and send a first call from the{' '}
              <a href="#/playground">playground</a>.
            </p>
          </Empty>
        </div>
      ) : (
        <>
          <Charts data={data} />
          <section className="grid four" aria-label="Rankings">
            <Ranking title="Models" sums={data.models} link="model" range={range} />
            <Ranking title="API keys" sums={data.keys} link="keyId" range={range} names={data.keys} />
            <Ranking title="Channels" sums={data.channels} link="channel" range={range} />
            <Ranking title="Statuses" sums={data.statuses} link="status" range={range} />
          </section>
        </>
      )}
    </>
  );
}

function Health({ health }: { readonly health: OverviewData['health'] }) {
  const notices = [
    health.rates === 'degraded' && 'The shared store of rate limits does not answer.',
    health.unsettled > 100 &&
      `${count(health.unsettled)} calls wait to be charged: the database is slow or gone.`,
    ...health.warnings,
    health.disabledChannels.length > 0 && `Switched off: ${health.disabledChannels.join(', ')}.`,
  ].filter((text) => text !== false);
  return notices.map((text) => (
    <p key={text} className="notice warn" role="status">
      {text}
    </p>
  ));
}

function Tile({
  label,
  value,
  hint,
}: {
  readonly label: string;
  readonly value: string;
  readonly hint: string;
}) {
  return (
    <div className="card tile">
      <span className="label">{label}</span>
      <span className="value">{value}</span>
      <span className="hint">{hint}</span>
    </div>
  );
}

function Charts({ data }: { readonly data: OverviewData }) {
  const { times, calls, cost, latency, first } = useMemo(() => seriesOf(data), [data]);
  return (
    <section className="grid two" aria-label="Over time">
      <ChartCard title="Calls" series={calls} times={times} show={brief} />
      <ChartCard title="Cost" series={cost} times={times} show={money} />
      <ChartCard title="Duration" series={latency} times={times} show={duration} />
      <ChartCard title="Time to first byte" series={first} times={times} show={duration} />
    </section>
  );
}

function ChartCard({
  title,
  series,
  times,
  show,
}: {
  readonly title: string;
  readonly series: readonly Series[];
  readonly times: readonly number[];
  readonly show: (value: number) => string;
}) {
  const most = Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  return (
    <div className="card">
      <header>
        <h2>{title}</h2>
        {series.length > 1 && <Legend series={series} />}
      </header>
      <div className="body">
        <Chart
          label={`${title} over time, at most ${show(most)}`}
          times={times}
          series={series}
          show={show}
        />
      </div>
    </div>
  );
}

/** Buckets without calls are not in the data: they are nothing for counts, and unknown for durations. */
function seriesOf({ since, until, bucket, series }: OverviewData) {
  const found = new Map(series.map((sums) => [Number(sums.group), sums]));
  const starts: number[] = [];
  const begin = Math.floor(since / bucket) * bucket;
  for (let start = begin; start < until && starts.length < 2_000; start += bucket) starts.push(start);
  const take = <T,>(value: (sums: UsageSumsView) => T, nothing: T): T[] =>
    starts.map((start) => {
      const sums = found.get(start);
      return sums === undefined ? nothing : value(sums);
    });
  const lines = (member: 'ms' | 'firstMs'): Series[] =>
    (
      [
        ['p50', '--accent', 0],
        ['p95', '--violet', 1],
        ['p99', '--warn', 2],
      ] as const
    ).map(([label, colour, place]) => ({
      label,
      colour,
      kind: 'line',
      values: take<number | null>((sums) => sums[member]?.[place] ?? null, null),
    }));
  return {
    times: starts.map((start) => start / 1000),
    calls: [
      { label: 'all', colour: '--accent', kind: 'columns', values: take(({ calls }) => calls, 0) },
      { label: 'failed', colour: '--bad', kind: 'columns', values: take(({ failed }) => failed, 0) },
    ] satisfies Series[],
    cost: [
      {
        label: 'cost',
        colour: '--accent',
        kind: 'columns',
        values: take(({ microDollars }) => microDollars, 0),
      },
    ] satisfies Series[],
    latency: lines('ms'),
    first: lines('firstMs'),
  };
}

function Ranking({
  title,
  sums,
  link,
  range,
  names = [],
}: {
  readonly title: string;
  readonly sums: readonly UsageSumsView[];
  readonly link: string;
  readonly range: string;
  readonly names?: readonly { readonly group: string | number; readonly name?: string | undefined }[];
}) {
  const most = Math.max(1, ...sums.map(({ calls }) => calls));
  const nameOf = (group: string | number): string =>
    names.find((entry) => entry.group === group)?.name ?? (group === '' ? 'none' : String(group));
  return (
    <div className="card">
      <header>
        <h2>{title}</h2>
        <span className="aside">calls · cost</span>
      </header>
      <div className="body">
        <ul className="ranking">
          {sums.map(({ group, calls, failed, microDollars }) => (
            <li key={group}>
              <a
                className="name"
                title={String(group)}
                href={addressOf('usage', { range, ...(group !== '' && { [link]: String(group) }) })}
              >
                {nameOf(group)}
              </a>
              <span className="small nowrap">
                {brief(calls)} <span className="muted">· {money(microDollars)}</span>
              </span>
              <span className="bar" title={`${count(failed)} failed`}>
                <i style={{ width: `${((calls - failed) / most) * 100}%` }} />
                <i style={{ width: `${(failed / most) * 100}%`, background: 'var(--bad)' }} />
              </span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
