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
import { useMemo, type ReactNode } from 'react';
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
}: {
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
}) {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const classOf = (id: string): string | undefined => {
    const { kind, wide } = byId.get(id) ?? {};
    return [kind, Boolean(wide) && 'wide', wide === 'extra' && wide].filter(Boolean).join(' ') || undefined;
  };
  const definitions = useMemo(
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
  const table = useTable({ features, data: rows as Row[], getRowId: rowId, columns: definitions });
  const sorted = table.getRowModel().rows;
  const { body, before, after, shown, measure } = useRowWindow(sorted.length, onEnd);
  const selectedHere =
    selection === undefined ? 0 : rows.filter((row) => selection.ids.has(rowId(row))).length;
  return (
    <div
      className={stacked ? 'scroll stacked' : 'scroll'}
      // Where no row can have the focus, the arrow keys need it here to scroll.
      {...(onOpen === undefined && { role: 'region', 'aria-label': label, tabIndex: 0 })}
    >
      <table aria-label={label} aria-rowcount={shown.length < sorted.length ? sorted.length + 1 : undefined}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {selection !== undefined && (
                <th scope="col" className="select">
                  <input
                    type="checkbox"
                    aria-label="Select all that are listed"
                    checked={selectedHere > 0 && selectedHere === rows.length}
                    ref={(box) => {
                      if (box !== null) box.indeterminate = selectedHere > 0 && selectedHere < rows.length;
                    }}
                    onChange={({ target }) =>
                      selection.change(new Set(target.checked ? rows.map((row) => rowId(row)) : []))
                    }
                  />
                </th>
              )}
              {group.headers.map((header) => {
                const { kind, order: own } = byId.get(header.column.id) ?? {};
                const isOrder = order !== undefined && own !== undefined;
                const sortedBy = isOrder ? own === order.current && 'desc' : header.column.getIsSorted();
                return (
                  <th
                    key={header.id}
                    scope="col"
                    className={classOf(header.column.id)}
                    aria-sort={
                      sortedBy === 'asc' ? 'ascending' : sortedBy === 'desc' ? 'descending' : undefined
                    }
                  >
                    {kind === 'actions' ? (
                      <span className="visually-hidden">
                        <table.FlexRender header={header} />
                      </span>
                    ) : isOrder || header.column.getCanSort() ? (
                      <button
                        type="button"
                        onClick={isOrder ? () => order.choose(own) : header.column.getToggleSortingHandler()}
                      >
                        <table.FlexRender header={header} />
                        <span className="sort" aria-hidden="true">
                          {sortedBy === 'asc' ? '▲' : sortedBy === 'desc' ? '▼' : ''}
                        </span>
                      </button>
                    ) : (
                      <table.FlexRender header={header} />
                    )}
                  </th>
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
                {...(onOpen !== undefined && {
                  className: 'clickable',
                  tabIndex: 0,
                  onClick: (event) => {
                    // Buttons and links in a row do what they say, and nothing else.
                    if (!(event.target as Element).closest('button, a, input, .select')) onOpen(row.original);
                  },
                  onKeyDown: (event) => {
                    if (event.key === 'Enter' && event.target === event.currentTarget) onOpen(row.original);
                  },
                })}
              >
                {selection !== undefined && (
                  <td className="select">
                    <input
                      type="checkbox"
                      aria-label={`Select ${rowName?.(row.original) ?? row.id}`}
                      checked={selection.ids.has(row.id)}
                      onChange={({ target }) => {
                        const ids = new Set(selection.ids);
                        if (target.checked) ids.add(row.id);
                        else ids.delete(row.id);
                        selection.change(ids);
                      }}
                    />
                  </td>
                )}
                {row.getAllCells().map((cell) => (
                  <td
                    key={cell.id}
                    className={classOf(cell.column.id)}
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
    </div>
  );
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
