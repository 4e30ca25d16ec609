/** Configuration: entries of the config file, which are locked, and entries that administrators change while the gateway runs. */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ConfigChanged, ConfigEntryView } from '../../../admin/schemas/index.ts';
import { configApi } from '../parts/config-api.ts';
import { kindHints, kinds, oneOf, sayChanged } from '../parts/config-words.ts';
import { DataTable } from '../parts/data-table.tsx';
import { Segments } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import { useMay } from '../parts/may.ts';
import { changeQuery, usePlace } from '../parts/router.ts';
import { Await, Empty, More } from '../parts/states.tsx';
import { SearchBox } from '../parts/typed.tsx';
import { columnsOf } from './config-columns.tsx';
import { ConfigDetail } from './config-detail.tsx';
import { ConfigForm } from './config-form.tsx';
import { ConfigHistory } from './config-history.tsx';

const noForms = { forms: [], price: {}, kinds: [] };

/** The view of the configuration. */
export function Config() {
  const queries = useQueryClient();
  const { query } = usePlace();
  const [kind] = kinds.find(([name]) => name === query.get('kind')) ?? kinds[0];
  const search = query.get('search')?.trim() ?? '';
  const isHistory = query.get('history') !== null;
  const mayChange = useMay('createConfig');
  const forms = useQuery({ queryKey: ['config', 'forms'], queryFn: configApi.forms, staleTime: Infinity });
  const pages = useInfiniteQuery({
    queryKey: ['config', 'entries', kind, search],
    queryFn: ({ pageParam }) => configApi.list({ kind, search }, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? 10_000 : false),
  });
  const rows = pages.data?.pages.flatMap(({ entries }) => entries) ?? [];
  const { enabled = true, revision = 0, running = 0 } = pages.data?.pages.at(-1) ?? {};
  const canMake = mayChange && enabled && forms.data?.kinds.includes(kind) === true;
  const [form, setForm] = useState<'create' | ConfigEntryView>();
  // A new option may be any that has no entry: a search shows only a part of the entries.
  const isPartOfOptions = kind === 'plugin' && search !== '';
  const options = useQuery({
    queryKey: ['config', 'entries', 'options'],
    queryFn: () => configApi.list({ kind: 'plugin' }, undefined),
    enabled: isPartOfOptions,
  });
  const taken = isPartOfOptions ? options.data?.entries : rows;
  const opened = rows.find(({ id, origin }) => `${origin}:${id}` === query.get('entry'));
  const open = (entry?: ConfigEntryView): void =>
    changeQuery({ entry: entry && `${entry.origin}:${entry.id}` });
  const refresh = (): void => {
    void queries.invalidateQueries({ queryKey: ['config', 'entries'] });
    void queries.invalidateQueries({ queryKey: ['config', 'history'] });
    void queries.invalidateQueries({ queryKey: ['channels'] });
    void queries.invalidateQueries({ queryKey: ['models'] });
  };
  const changed = (what: string, result: ConfigChanged): void => {
    sayChanged(what, result);
    refresh();
  };
  const order = rows.filter(({ origin, kind: of }) => origin === 'run-time' && of === 'channel');
  const canOrder = mayChange && enabled && search === '' && !pages.hasNextPage;
  const add = (
    <button type="button" className="button primary" onClick={() => setForm('create')}>
      <Icon name="plus" />
      Add {oneOf(kind)}
    </button>
  );
  return (
    <>
      <header>
        <h1>Configuration</h1>
        <div className="actions">
          <SearchBox
            label="Find an entry"
            hint="Name"
            value={search}
            onChange={(text) => changeQuery({ search: text }, 'replace')}
          />
          <button type="button" className="button" onClick={() => changeQuery({ history: 'open' })}>
            History
          </button>
          {canMake && add}
        </div>
      </header>
      {!enabled && (
        <p className="notice warn">
          The config file allows no changes at run time: see <code>runtimeConfig</code>.
        </p>
      )}
      {enabled && running < revision && (
        <p className="notice" role="status">
          This process runs revision {running} of {revision}: it is putting the last change in force.
        </p>
      )}
      <Segments
        label="Kind of entries"
        options={kinds.map(([name, title]) => [name, title] as const)}
        value={kind}
        onChange={(next) => changeQuery({ kind: next, entry: undefined }, 'replace')}
      />
      <div className="card">
        <Await query={pages} what="the configuration">
          {() =>
            rows.length === 0 ? (
              <Empty title={search === '' ? 'Nothing here yet' : 'No entry fits'}>
                {search === '' && <p>{kindHints[kind]}</p>}
                {forms.data?.kinds.includes(kind) === false && (
                  <p>The plugin of these entries is not running. List it in the config file first.</p>
                )}
                {canMake && add}
              </Empty>
            ) : (
              <DataTable
                label="Entries"
                columns={columnsOf(kind)}
                rows={rows}
                rowId={({ id, origin }) => `${origin}:${id}`}
                sortable={kind !== 'channel' && !pages.hasNextPage}
                onEnd={() => void (pages.hasNextPage && pages.fetchNextPage())}
                onOpen={open}
              />
            )
          }
        </Await>
        <More query={pages} count={rows.length} one="entry" many="entries" />
      </div>
      {opened !== undefined && (
        <ConfigDetail
          key={opened.id}
          entry={opened}
          mayChange={mayChange && enabled}
          order={canOrder ? order.map(({ name }) => name) : undefined}
          revision={revision}
          onClose={() => open()}
          onEdit={() => setForm(opened)}
          onChanged={changed}
          onFailed={refresh}
        />
      )}
      {form !== undefined && (form !== 'create' || taken !== undefined) && (
        <ConfigForm
          kind={kind}
          entry={form === 'create' ? undefined : form}
          forms={forms.data ?? noForms}
          taken={(taken ?? []).map(({ name }) => name)}
          onClose={() => setForm(undefined)}
          onSaved={(name, result) => {
            setForm(undefined);
            changed(`${name} is saved.`, result);
          }}
        />
      )}
      {isHistory && (
        <ConfigHistory
          mayUndo={mayChange && enabled}
          onClose={() => changeQuery({ history: undefined })}
          onChanged={changed}
        />
      )}
    </>
  );
}
