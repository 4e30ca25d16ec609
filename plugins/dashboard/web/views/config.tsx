/** Configuration: entries of the config file, which are locked, and entries that administrators change while the gateway runs. */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { ConfigChanged, ConfigEntryView } from '../../../admin/schemas/index.ts';
import { configApi } from '../parts/config-api.ts';
import { kindHints, kinds, oneOf, showChangeResult } from '../parts/config-words.ts';
import { DataTable } from '../parts/data-table.tsx';
import { Segments } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import { useMay } from '../parts/may.ts';
import { changeQuery, useRoute } from '../parts/router.ts';
import { Await, Empty, More } from '../parts/states.tsx';
import { SearchBox } from '../parts/typed.tsx';
import { columnsOf } from './config-columns.tsx';
import { ConfigDetail } from './config-detail.tsx';
import { ConfigForm } from './config-form.tsx';
import { ConfigHistory } from './config-history.tsx';

const noForms = { forms: [], price: {}, kinds: [] };

type Kind = ConfigEntryView['kind'];

/** Pages of the entries that fit. */
function useEntries(kind: Kind, search: string) {
  return useInfiniteQuery({
    queryKey: ['config', 'entries', kind, search],
    queryFn: ({ pageParam }) => configApi.list({ kind, search }, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? 10_000 : false),
  });
}

/** Returns the entries whose names are taken; undefined until they are known. */
function useTaken(
  kind: Kind,
  search: string,
  listed: readonly ConfigEntryView[],
): readonly ConfigEntryView[] | undefined {
  // A new option may be any that has no entry: a search shows only a part of the entries.
  const isPartOfOptions = kind === 'plugin' && search !== '';
  const options = useQuery({
    queryKey: ['config', 'entries', 'options'],
    queryFn: () => configApi.list({ kind: 'plugin' }, undefined),
    enabled: isPartOfOptions,
  });
  return isPartOfOptions ? options.data?.entries : listed;
}

/** Returns a function that reads again what depends on the configuration. */
function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: ['config', 'entries'] });
    void queries.invalidateQueries({ queryKey: ['config', 'history'] });
    void queries.invalidateQueries({ queryKey: ['channels'] });
    void queries.invalidateQueries({ queryKey: ['models'] });
  };
}

/** The view of the configuration. */
export function Config() {
  const { query } = useRoute();
  const [kind] = kinds.find(([name]) => name === query.get('kind')) ?? kinds[0];
  const search = query.get('search')?.trim() ?? '';
  const isHistory = query.get('history') !== null;
  const mayChange = useMay('createConfig');
  const forms = useQuery({ queryKey: ['config', 'forms'], queryFn: configApi.forms, staleTime: Infinity });
  const pages = useEntries(kind, search);
  const rows = pages.data?.pages.flatMap(({ entries }) => entries) ?? [];
  const { enabled = true, revision = 0, running = 0 } = pages.data?.pages.at(-1) ?? {};
  const canMake = mayChange && enabled && forms.data?.kinds.includes(kind) === true;
  const [form, setForm] = useState<'create' | ConfigEntryView>();
  const taken = useTaken(kind, search, rows);
  const opened = rows.find(({ id, origin }) => `${origin}:${id}` === query.get('entry'));
  const open = (entry?: ConfigEntryView): void =>
    changeQuery({ entry: entry && `${entry.origin}:${entry.id}` });
  const refresh = useRefresh();
  const changed = (what: string, result: ConfigChanged): void => {
    showChangeResult(what, result);
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
      <Header search={search} add={canMake && add} />
      <Notices enabled={enabled} revision={revision} running={running} />
      <KindField kind={kind} />
      <Entries
        pages={pages}
        rows={rows}
        kind={kind}
        search={search}
        isOff={forms.data?.kinds.includes(kind) === false}
        add={canMake && add}
        onOpen={open}
      />
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

function KindField({ kind }: { readonly kind: Kind }) {
  return (
    <Segments
      label="Kind of entries"
      options={kinds.map(([name, title]) => [name, title] as const)}
      value={kind}
      onChange={(next) => changeQuery({ kind: next, entry: undefined }, 'replace')}
    />
  );
}

function Notices({
  enabled,
  revision,
  running,
}: {
  readonly enabled: boolean;
  readonly revision: number;
  readonly running: number;
}) {
  return (
    <>
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
    </>
  );
}

function Header({ search, add }: { readonly search: string; readonly add: ReactNode }) {
  return (
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
        {add}
      </div>
    </header>
  );
}

function Entries({
  pages,
  rows,
  kind,
  search,
  isOff,
  add,
  onOpen,
}: {
  readonly pages: ReturnType<typeof useEntries>;
  readonly rows: readonly ConfigEntryView[];
  readonly kind: Kind;
  readonly search: string;
  /** True where the plugin of such entries is not running. */
  readonly isOff: boolean;
  readonly add: ReactNode;
  readonly onOpen: (entry: ConfigEntryView) => void;
}) {
  return (
    <div className="card">
      <Await query={pages} what="the configuration">
        {() =>
          rows.length === 0 ? (
            <NoEntries search={search} hint={kindHints[kind]} isOff={isOff} add={add} />
          ) : (
            <DataTable
              label="Entries"
              columns={columnsOf(kind)}
              rows={rows}
              rowId={({ id, origin }) => `${origin}:${id}`}
              sortable={kind !== 'channel' && !pages.hasNextPage}
              onEnd={() => void (pages.hasNextPage && pages.fetchNextPage())}
              onOpen={onOpen}
            />
          )
        }
      </Await>
      <More query={pages} count={rows.length} one="entry" many="entries" />
    </div>
  );
}

function NoEntries({
  search,
  hint,
  isOff,
  add,
}: {
  readonly search: string;
  readonly hint: ReactNode;
  /** True where the plugin of such entries is not running. */
  readonly isOff: boolean;
  readonly add: ReactNode;
}) {
  return (
    <Empty title={search === '' ? 'Nothing here yet' : 'No entry fits'}>
      {search === '' && <p>{hint}</p>}
      {isOff && <p>The plugin of these entries is not running. List it in the config file first.</p>}
      {add}
    </Empty>
  );
}
