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
  /** True when the column is hidden on phones, because the row opens to show the rest. */
  readonly wide?: boolean;
}

/** Order of rows that the server sorts. */
export interface Order {
  readonly current: string;
  readonly choose: (order: string) => void;
}

/** A table whose columns sort by a click on their heads. With `onOpen` a row opens by a click or by Enter. Columns stay the same object from one picture to the next. */
export function DataTable<Row extends object>({
  label,
  columns,
  rows,
  rowId,
  onOpen,
  sortable = true,
  order,
}: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowId: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  /** False where there is more than these rows: the server gives pages in its own order. */
  readonly sortable?: boolean;
  readonly order?: Order;
}) {
  const byId = new Map(columns.map((column) => [column.id, column]));
  const classOf = (id: string): string | undefined => {
    const { kind, wide } = byId.get(id) ?? {};
    return [kind, wide === true && 'wide'].filter(Boolean).join(' ') || undefined;
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
  return (
    <div
      className="scroll"
      // Where no row can have the focus, the arrow keys need it here to scroll.
      {...(onOpen === undefined && { role: 'region', 'aria-label': label, tabIndex: 0 })}
    >
      <table aria-label={label}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const { kind, order: own } = byId.get(header.column.id) ?? {};
                const isOrder = order !== undefined && own !== undefined;
                const sorted = isOrder ? own === order.current && 'desc' : header.column.getIsSorted();
                return (
                  <th
                    key={header.id}
                    scope="col"
                    className={classOf(header.column.id)}
                    aria-sort={sorted === 'asc' ? 'ascending' : sorted === 'desc' ? 'descending' : undefined}
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
                          {sorted === 'asc' ? '▲' : sorted === 'desc' ? '▼' : ''}
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
        <tbody>
          {table.getRowModel().rows.map((row) => (
            <tr
              key={row.id}
              {...(onOpen !== undefined && {
                className: 'clickable',
                tabIndex: 0,
                onClick: (event) => {
                  // Buttons and links in a row do what they say, and nothing else.
                  if (!(event.target as Element).closest('button, a, input')) onOpen(row.original);
                },
                onKeyDown: (event) => {
                  if (event.key === 'Enter' && event.target === event.currentTarget) onOpen(row.original);
                },
              })}
            >
              {row.getAllCells().map((cell) => (
                <td key={cell.id} className={classOf(cell.column.id)}>
                  <table.FlexRender cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
