/** Columns of the entries of the configuration. */
import type { ConfigEntryView } from '../../../admin/schemas/index.ts';
import { Badge } from '../parts/badges.tsx';
import type { Column } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { ago, exactly } from '../parts/text.ts';
import { summaryOf } from '../parts/value-text.ts';

const states = {
  active: ['good', 'active'],
  disabled: ['', 'disabled'],
  shadowed: ['warn', 'shadowed'],
  inactive: ['', 'inactive'],
  refused: ['bad', 'refused'],
} as const;

/** Meaning of a state. */
export const stateWords: Readonly<Record<ConfigEntryView['state'], string | undefined>> = {
  active: undefined,
  disabled: 'It is switched off: the gateway does not use it.',
  shadowed: 'The config file has an entry of this name, which is used in its place. This one can be deleted.',
  inactive: 'The plugin that it is for is not running.',
  refused: undefined,
};

/** Shows how an entry stands. */
export function EntryState({ state }: Pick<ConfigEntryView, 'state'>) {
  const [kind, word] = states[state];
  return <Badge kind={kind}>{word}</Badge>;
}

/** Shows where an entry stands. */
export function EntryOrigin({ origin, place }: Pick<ConfigEntryView, 'origin' | 'place'>) {
  return origin === 'file' ? (
    <span className="nowrap locked" title={place}>
      <Icon name="lock" /> config file
    </span>
  ) : (
    <span className="nowrap">run-time</span>
  );
}

const columns: readonly Column<ConfigEntryView>[] = [
  {
    id: 'name',
    title: 'Name',
    sortBy: ({ name }) => name,
    show: ({ name, problem }) => (
      <>
        <strong className="truncate far" title={name}>
          {name}
        </strong>
        {problem !== undefined && <span className="sub bad-text">{problem.message}</span>}
      </>
    ),
  },
  { id: 'state', title: 'State', sortBy: ({ state }) => state, show: (entry) => <EntryState {...entry} /> },
  {
    id: 'origin',
    title: 'From',
    sortBy: ({ origin }) => origin,
    show: (entry) => <EntryOrigin {...entry} />,
  },
  {
    id: 'value',
    title: 'Value',
    wide: true,
    show({ value }) {
      const text = value === undefined ? 'cannot be opened' : summaryOf(value);
      return (
        <span className="truncate far mono small" title={text}>
          {text}
        </span>
      );
    },
  },
  {
    id: 'changed',
    title: 'Changed',
    wide: true,
    sortBy: ({ updatedAt }) => updatedAt ?? 0,
    show: ({ updatedAt }) =>
      updatedAt === undefined ? (
        <span className="muted">–</span>
      ) : (
        <span className="nowrap" title={exactly(updatedAt)}>
          {ago(updatedAt)}
        </span>
      ),
  },
];

const titles: Readonly<Partial<Record<ConfigEntryView['kind'], string>>> = {
  alias: 'Model',
  access: 'Models',
  channel: 'Kind and models',
};

const byKind = new Map<ConfigEntryView['kind'], readonly Column<ConfigEntryView>[]>();

/** Returns the columns for a kind: the same ones each time. */
export function columnsOf(kind: ConfigEntryView['kind']): readonly Column<ConfigEntryView>[] {
  const known = byKind.get(kind);
  if (known !== undefined) return known;
  const own = columns.map((column) =>
    column.id === 'value' ? { ...column, title: titles[kind] ?? column.title } : column,
  );
  byKind.set(kind, own);
  return own;
}
