import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Fragment } from 'react';
import type { Status } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { useGatewayState } from '../parts/gateway-state.tsx';
import { Await } from '../parts/states.tsx';
import { ago, count, duration, exactly, percent } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

type Worker = Status['workers'][number];

const kinds = { starting: 'accent', serving: 'good', spare: '', leaving: '' } as const;

const columns: readonly Column<Worker>[] = [
  { id: 'worker', title: 'Worker', sortBy: ({ worker }) => worker, show: ({ worker }) => worker },
  { id: 'pid', title: 'Process', show: ({ pid }) => <span className="mono">{pid}</span> },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ state }) => state,
    show: ({ state }) => <Badge kind={kinds[state]}>{state}</Badge>,
  },
  { id: 'version', title: 'Version', show: ({ version }) => <span className="mono">{version || '–'}</span> },
  {
    id: 'since',
    title: 'Since',
    sortBy: ({ since }) => since,
    show: ({ since }) => <span title={exactly(since)}>{ago(since)}</span>,
  },
];

/** Returns the name of stored data as a title: `usage-records` is `Usage records`. */
const titleOf = (name: string): string =>
  `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`.replace('Api ', 'API ');

/** The processes that serve, the configuration in force, and the button for a reload. */
export function Processes() {
  const queries = useQueryClient();
  const state = useGatewayState();
  const reload = useMutation({
    mutationFn: api.reload,
    onSuccess: ({ ok }) =>
      ok
        ? showToast('Reloaded: new calls use the changed files.')
        : showToast('Reload failed, previous configuration kept.', 'bad'),
    onSettled: () => queries.invalidateQueries(),
  });
  return (
    <>
      <header>
        <h1>Processes</h1>
        <p>A reload starts new ones; those before finish what they have.</p>
        <div className="actions">
          <button
            type="button"
            className="button"
            disabled={reload.isPending || state.data?.reloads !== true}
            onClick={() => reload.mutate()}
          >
            {reload.isPending ? 'Reloading…' : 'Reload'}
          </button>
        </div>
      </header>
      <Await query={state} what="the processes">
        {(gateway) => (
          <>
            <Facts gateway={gateway} />
            {gateway.kept.length > 0 && <StoredData kept={gateway.kept} />}
            <div className="card">
              <DataTable
                label="Workers"
                stacked
                columns={columns}
                rows={gateway.workers}
                rowId={({ pid }) => String(pid)}
              />
            </div>
          </>
        )}
      </Await>
    </>
  );
}

type Gateway = NonNullable<ReturnType<typeof useGatewayState>['data']>;

function Facts({
  gateway: { version, since, lastReload, watching, crashes, worker, load },
}: {
  readonly gateway: Gateway;
}) {
  return (
    <div className="card">
      <div className="body stack">
        <dl className="facts">
          <dt>Configuration</dt>
          <dd>
            <span className="mono">{version || 'unknown'}</span>, in force since {exactly(since)}
            {watching && ', files are watched'}
          </dd>
          <dt>Last reload</dt>
          <dd>
            {lastReload === undefined
              ? 'none'
              : `${lastReload.ok ? 'worked' : 'failed'} ${ago(lastReload.at)}, after ${duration(lastReload.ms)}`}
          </dd>
          <dt>Crashes</dt>
          <dd>{count(crashes)}</dd>
          <dt>Worker {worker} now</dt>
          <dd>
            {count(load.running)} calls run, {count(load.waiting)} wait, {count(load.refused)} were refused;
            memory {percent(load.memory, 1)}, new calls wait {duration(load.lag)}
          </dd>
        </dl>
      </div>
    </div>
  );
}

function StoredData({ kept }: Pick<Gateway, 'kept'>) {
  return (
    <div className="card">
      <header>
        <h2>Stored data</h2>
      </header>
      <div className="body stack">
        <dl className="facts">
          {kept.map(({ what, rule, rows, overdueSeconds, warning }) => (
            <Fragment key={what}>
              <dt>{titleOf(what)}</dt>
              <dd>
                {rule}
                {rows !== undefined && ` ${count(rows)} now.`}
                {overdueSeconds > 0 && ` Behind by ${duration(overdueSeconds * 1_000)}.`}
                {warning !== undefined && <strong> {warning}</strong>}
              </dd>
            </Fragment>
          ))}
        </dl>
      </div>
    </div>
  );
}
