/** Lists entries of the configuration for the admin API. */
import { GatewayError } from 'sluice';
import { fileEntries, problemOf } from 'sluice/internal';
import type { RuntimeConfig, StandingEntry } from '../core-types.ts';
import type { ConfigEntryView, ConfigPage } from '../schemas/index.ts';

type Definitions = RuntimeConfig['definitions'];

/** Which entries are wanted. */
interface PageQuery {
  readonly kind?: ConfigEntryView['kind'];
  readonly origin?: ConfigEntryView['origin'];
  readonly search?: string;
  readonly limit: number;
  readonly after?: string;
}

/** Returns what is shown of a run-time entry. */
export async function entryView(
  definitions: Definitions,
  { entry, state, reason }: StandingEntry,
): Promise<ConfigEntryView> {
  const { kind, name, value, secretsAt, version, createdAt, updatedAt } = entry;
  return {
    id: `${kind}:${name}`,
    kind,
    name,
    origin: 'run-time',
    state,
    ...(reason === undefined ? {} : { reason, problem: { ...problemOf(reason) } }),
    ...(value === undefined ? {} : { value: await definitions.viewOf(entry, value, secretsAt) }),
    version,
    createdAt,
    updatedAt,
  };
}

/** Returns a page of entries: those of the file, then those of the run-time part. Only what is on the page is looked at closely. */
export async function pageOf(
  config: RuntimeConfig,
  { kind, origin, search, limit, after }: PageQuery,
): Promise<ConfigPage> {
  const { definitions, file } = config;
  const { revision, running, entries } = await config.list();
  const sought = search?.toLowerCase();
  const ofFile = await fileEntries(file, definitions);
  const all = [
    ...ofFile.map((entry) => ({
      kind: entry.kind,
      name: entry.name,
      origin: 'file' as const,
      view: async (): Promise<ConfigEntryView> => ({
        id: `${entry.kind}:${entry.name}`,
        kind: entry.kind,
        name: entry.name,
        origin: 'file',
        state: 'active',
        place: entry.location,
        value: await entry.view(),
      }),
    })),
    ...entries.map((standing) => ({
      kind: standing.entry.kind,
      name: standing.entry.name,
      origin: 'run-time' as const,
      view: () => entryView(definitions, standing),
    })),
  ];
  const wanted = all.filter(
    (one) =>
      (kind === undefined || one.kind === kind) &&
      (origin === undefined || one.origin === origin) &&
      (sought === undefined || one.name.toLowerCase().includes(sought)),
  );
  const cursorOf = (one: (typeof all)[number]): string => `${one.origin}:${one.kind}:${one.name}`;
  const start = after === undefined ? 0 : wanted.findIndex((one) => cursorOf(one) === after) + 1;
  if (after !== undefined && start === 0)
    throw new GatewayError(
      'invalid_value',
      'after is not a cursor of this list. Use "next" from the previous page.',
      { param: 'after' },
    );
  const page = wanted.slice(start, start + limit);
  const last = page.at(-1);
  const hasMore = start + limit < wanted.length;
  return {
    entries: await Promise.all(page.map(({ view }) => view())),
    ...(hasMore && last !== undefined ? { next: cursorOf(last) } : {}),
    revision,
    running,
    enabled: config.isEnabled,
  };
}
