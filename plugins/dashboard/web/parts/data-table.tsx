/** Tables with sorting, selection and rows that open, of which the document has only what is in view. */
import {
  createSortedRowModel,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  sortFn_text,
  tableFeatures,
  useTable,
  type ColumnDef,
} from '@tanstack/react-table';
import { useMemo, type HTMLAttributes, type ReactNode } from 'react';
import { useRowWindow } from './row-window.ts';

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, text: sortFn_text, basic: sortFn_basic },
});

/** One column: what it is sorted by, and how it is shown. */
export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  /** Absent in columns that cannot be sorted by. */
  readonly sortBy?: (row: Row) => string | number | undefined;
  readonly show: (row: Row) => ReactNode;
  readonly kind?: 'number' | 'actions';
  /** Name of the server's order by this column, in tables with `order`. */
  readonly order?: string;
  /** True when the column is hidden on phones, because the row opens to show the rest; `extra`: on all but large screens. */
  readonly wide?: boolean | 'extra';
}

/** Order of rows that the server sorts. */
export interface Order {
  readonly current: string;
  readonly choose: (order: string) => void;
}

/** Rows that are selected, for actions on several at once. */
export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly change: (ids: ReadonlySet<string>) => void;
}

/** Properties of a table. */
interface TableProps<Row extends object> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowId: (row: Row) => string;
  /** Name of a row, for its checkbox. */
  readonly rowName?: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  /** Called when the last rows come into view, to load more. */
  readonly onEnd?: (() => void) | undefined;
  /** False where there is more than these rows: the server gives pages in its own order. */
  readonly sortable?: boolean;
  /** True where phones show the cells of a row one below the other, each with its title: for rows that do not open. */
  readonly stacked?: boolean;
  readonly order?: Order;
  readonly selection?: Selection | undefined;
}

/**
 * A table whose columns sort by a click on their heads. With `onOpen` a row opens by a click or by Enter. Of many rows only those in view are
 * in the document. Columns stay the same object from one picture to the next.
 */
export function DataTable<Row extends object>({
  label,
  columns,
  rows,
  rowId,
  rowName,
  onOpen,
  onEnd,
  sortable = true,
  stacked = false,
  order,
  selection,
}: TableProps<Row>) {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const definitions = useDefinitions(columns, sortable);
  const table = useTable({ features, data: rows as Row[], getRowId: rowId, columns: definitions });
  const sorted = table.getRowModel().rows;
  const { body, before, after, shown, measure } = useRowWindow(sorted.length, onEnd);
  return (
    <ScrollBox label={label} stacked={stacked} isFocusable={onOpen === undefined}>
      <table aria-label={label} aria-rowcount={shown.length < sorted.length ? sorted.length + 1 : undefined}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {selection !== undefined && (
                <SelectAll ids={rows.map((row) => rowId(row))} selection={selection} />
              )}
              {group.headers.map((header) => {
                const column = byId.get(header.column.id);
                return (
                  <HeadCell
                    key={header.id}
                    kind={column?.kind}
                    className={classOf(column)}
                    {...sortOf(header.column, column?.order, order)}
                  >
                    <table.FlexRender header={header} />
                  </HeadCell>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body}>
          <Spacer height={before} />
          {shown.map((index) => {
            const row = sorted[index];
            if (row === undefined) return null;
            return (
              <tr
                key={row.id}
                ref={measure}
                data-index={index}
                aria-rowindex={shown.length < sorted.length ? index + 2 : undefined}
                aria-selected={selection?.ids.has(row.id)}
                {...(onOpen !== undefined && openedBy(() => onOpen(row.original)))}
              >
                {selection !== undefined && (
                  <SelectOne id={row.id} name={rowName?.(row.original) ?? row.id} selection={selection} />
                )}
                {row.getAllCells().map((cell) => (
                  <td
                    key={cell.id}
                    className={classOf(byId.get(cell.column.id))}
                    data-title={stacked ? byId.get(cell.column.id)?.title : undefined}
                  >
                    <table.FlexRender cell={cell} />
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer height={after} />
        </tbody>
      </table>
    </ScrollBox>
  );
}

function ScrollBox({
  label,
  stacked,
  isFocusable,
  children,
}: {
  readonly label: string;
  readonly stacked: boolean;
  /** True where no row can have the focus: the arrow keys need it here to scroll. */
  readonly isFocusable: boolean;
  readonly children: ReactNode;
}) {
  return (
    <div
      className={stacked ? 'scroll stacked' : 'scroll'}
      {...(isFocusable && { role: 'region', 'aria-label': label, tabIndex: 0 })}
    >
      {children}
    </div>
  );
}

function classOf({ kind, wide }: Pick<Column<object>, 'kind' | 'wide'> = {}): string | undefined {
  return [kind, Boolean(wide) && 'wide', wide === 'extra' && wide].filter(Boolean).join(' ') || undefined;
}

/** Returns how a column is sorted, and what a click on its head does. `own` is the server's order by it. */
function sortOf(
  column: {
    getIsSorted(): 'asc' | 'desc' | false;
    getCanSort(): boolean;
    getToggleSortingHandler(): ((event: unknown) => void) | undefined;
  },
  own: string | undefined,
  order: Order | undefined,
) {
  if (order !== undefined && own !== undefined)
    return { sortedBy: own === order.current && ('desc' as const), onSort: () => order.choose(own) };
  return {
    sortedBy: column.getIsSorted(),
    onSort: column.getCanSort() ? column.getToggleSortingHandler() : undefined,
  };
}

function useDefinitions<Row extends object>(columns: readonly Column<Row>[], sortable: boolean) {
  return useMemo(
    () =>
      columns.map(({ id, title, sortBy, show }): ColumnDef<typeof features, Row> => ({
        id,
        header: title,
        accessorFn: (row) => sortBy?.(row),
        enableSorting: sortable && sortBy !== undefined,
        sortUndefined: 'last',
        cell: ({ row }) => show(row.original),
      })),
    [columns, sortable],
  );
}

function HeadCell({
  kind,
  className,
  sortedBy,
  onSort,
  children,
}: {
  readonly kind: Column<object>['kind'];
  readonly className: string | undefined;
  readonly sortedBy: 'asc' | 'desc' | false;
  /** Absent in columns that cannot be sorted by. */
  readonly onSort: ((event: unknown) => void) | undefined;
  readonly children: ReactNode;
}) {
  return (
    <th
      scope="col"
      className={className}
      aria-sort={sortedBy === 'asc' ? 'ascending' : sortedBy === 'desc' ? 'descending' : undefined}
    >
      {kind === 'actions' ? (
        <span className="visually-hidden">{children}</span>
      ) : onSort === undefined ? (
        children
      ) : (
        <button type="button" onClick={onSort}>
          {children}
          <span className="sort" aria-hidden="true">
            {sortedBy === 'asc' ? '▲' : sortedBy === 'desc' ? '▼' : ''}
          </span>
        </button>
      )}
    </th>
  );
}

function SelectAll({ ids, selection }: { readonly ids: readonly string[]; readonly selection: Selection }) {
  const selected = ids.filter((id) => selection.ids.has(id)).length;
  return (
    <th scope="col" className="select">
      <input
        type="checkbox"
        aria-label="Select all that are listed"
        checked={selected > 0 && selected === ids.length}
        ref={(box) => {
          if (box !== null) box.indeterminate = selected > 0 && selected < ids.length;
        }}
        onChange={({ target }) => selection.change(new Set(target.checked ? ids : []))}
      />
    </th>
  );
}

function SelectOne({
  id,
  name,
  selection,
}: {
  readonly id: string;
  readonly name: string;
  readonly selection: Selection;
}) {
  return (
    <td className="select">
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={selection.ids.has(id)}
        onChange={({ target }) => {
          const ids = new Set(selection.ids);
          if (target.checked) ids.add(id);
          else ids.delete(id);
          selection.change(ids);
        }}
      />
    </td>
  );
}

/** Returns the attributes of a row that opens by a click or by Enter. */
function openedBy(open: () => void): HTMLAttributes<HTMLTableRowElement> {
  return {
    className: 'clickable',
    tabIndex: 0,
    onClick: (event) => {
      // Clicks on buttons and links in a row do not open the row.
      if (!(event.target as Element).closest('button, a, input, .select')) open();
    },
    onKeyDown: (event) => {
      if (event.key === 'Enter' && event.target === event.currentTarget) open();
    },
  };
}

/** Takes the place of rows that are not in the document. */
function Spacer({ height }: { readonly height: number }) {
  if (height === 0) return null;
  return (
    <tr aria-hidden="true" className="spacer">
      <td style={{ height }} />
    </tr>
  );
}
