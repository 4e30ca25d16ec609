/** Numbers of names and keys of sums in SQLite. */
import { row, rows, type SqlValue, type Work } from '../../state/database/sql.ts';

const day = 86_400_000;

/** Numbers of the names and keys of sums in SQLite, for one transaction: each is looked up once, and made where there is none. */
export class SumNames {
  readonly #names = new Map<string, Known>();
  readonly #keys = new Map<SqlValue, Known>();

  /** The number of a model, channel, format, operation, status and failure. */
  *names(values: readonly SqlValue[], start: number): Work<number> {
    return yield* this.#find(this.#names, values.join('\0'), table.names, values, start);
  }

  *key(keyId: SqlValue, start: number): Work<number> {
    return yield* this.#find(this.#keys, keyId, table.keys, [keyId], start);
  }

  *#find<Key>(
    all: Map<Key, Known>,
    key: Key,
    { find, add, see }: Table,
    values: readonly SqlValue[],
    start: number,
  ): Work<number> {
    const lastDay = Math.floor(start / day);
    let known = all.get(key);
    if (known === undefined) {
      const found = (yield* row(find, ...values)) ??
        (yield* row(add, ...values, lastDay)) ?? { id: 0, last_day: 0 };
      known = { id: Number(found['id']), lastDay: Number(found['last_day']) };
      all.set(key, known);
    }
    if (known.lastDay < lastDay) {
      yield* rows(see, lastDay, known.id);
      known.lastDay = lastDay;
    }
    return known.id;
  }
}

interface Known {
  readonly id: number;
  lastDay: number;
}

/** Statements that find, add and keep a name. */
interface Table {
  readonly find: string;
  readonly add: string;
  readonly see: string;
}

function tableOf(name: string, columns: readonly string[]): Table {
  return {
    find: `SELECT id, last_day FROM ${name} WHERE ${columns.map((column) => `${column} = ?`).join(' AND ')}`,
    add: `INSERT INTO ${name} (${columns.join(', ')}, last_day) VALUES (${columns.map(() => '?').join(', ')}, ?) RETURNING id, last_day`,
    see: `UPDATE ${name} SET last_day = ? WHERE id = ?`,
  };
}

const table = {
  names: tableOf('usage_names', ['model', 'channel', 'format', 'operation', 'status', 'failed']),
  keys: tableOf('usage_keys', ['key_id']),
} as const;
