/** Keeps the run-time configuration in the database: entries, their order, and a history of changes. */
import { GatewayError } from '../../sdk/errors.ts';
import { parseObject } from '../../json/parse.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { row, rows, sqlOf, type Work } from '../database/sql.ts';
import { whileLocked } from '../lock.ts';
import type { Sealer } from '../../sdk/sealer.ts';
import { openSealer } from '../sealer.ts';
import type { Stores } from '../stores.ts';
import {
  runtimeLimits,
  type EntryChange,
  type EntryKind,
  type HistoryRecord,
  type RuntimeChange,
  type RuntimeConfigStore,
  type RuntimeEntry,
  type RuntimeSnapshot,
} from './index.ts';

/** Namespaces of the entries and of the history. */
const entriesName = 'runtime-config';
const historyName = 'runtime-config-history';

/** Key of the row with the revision. No entry has it, because theirs have a colon. */
const headKey = 'head';

/** A lock that a change holds while it is tried, so that changes of several processes do not undo each other's trials. The revision is checked all the same. */
const lock = {
  namespace: 'runtime-config-lock',
  key: 'change',
  lifeMs: 60_000,
  patienceMs: 120_000,
  refusal: () => new GatewayError('conflict', 'Others change the configuration at the same time. Try again.'),
};

/** Purpose that the sealer binds values to. */
const purpose = 'runtime-config';

/** Kinds whose values may hold credentials. */
const sealedKinds: ReadonlySet<EntryKind> = new Set<EntryKind>(['channel', 'plugin']);

/** An entry as it is stored: with its value, or with the sealed value. */
interface StoredEntry extends Omit<RuntimeEntry, 'value'> {
  readonly value?: JsonValue;
}

/** A change as the history keeps it. */
interface StoredRecord extends Omit<HistoryRecord, 'changes'> {
  readonly changes: readonly (Omit<EntryChange, 'before' | 'after'> & {
    readonly before?: StoredEntry;
    readonly after?: StoredEntry;
  })[];
}

interface Head {
  readonly revision: number;
  readonly order: readonly string[];
}

/** Opens the run-time configuration of a database. Makes the key of the seals where there is none. */
export async function openRuntimeConfigStore(stores: Stores): Promise<RuntimeConfigStore> {
  return new DatabaseStore(stores, await openSealer(stores));
}

class DatabaseStore implements RuntimeConfigStore {
  readonly #stores: Stores;
  readonly #sealer: Sealer;

  constructor(stores: Stores, sealer: Sealer) {
    this.#stores = stores;
    this.#sealer = sealer;
  }

  async read(): Promise<RuntimeSnapshot> {
    // One statement, so that head and entries are those of one moment.
    const found = await this.#sql.run(() =>
      rows('SELECT key, value FROM keyv WHERE namespace = ? ORDER BY key', entriesName),
    );
    let head: Head = { revision: 0, order: [] };
    let bytes = 0;
    const entries: RuntimeEntry[] = [];
    for (const { key, value } of found) {
      const text = String(value);
      if (key === headKey) head = headOf(text);
      else {
        bytes += Buffer.byteLength(text);
        entries.push(this.#open(JSON.parse(text) as StoredEntry));
      }
    }
    return { ...head, entries, bytes };
  }

  async revision(): Promise<number> {
    const found = await this.#sql.run(() =>
      row('SELECT value FROM keyv WHERE namespace = ? AND key = ?', entriesName, headKey),
    );
    return found === undefined ? 0 : headOf(String(found['value'])).revision;
  }

  alone<Result>(work: () => Promise<Result>): Promise<Result> {
    return whileLocked(this.#stores, lock, work);
  }

  async write(base: number, change: RuntimeChange): Promise<number | undefined> {
    const revision = base + 1;
    const stored: StoredRecord = {
      ...change,
      revision,
      at: Date.now(),
      changes: change.changes.map(({ kind, name, before, after }) => ({
        kind,
        name,
        ...(before === undefined ? {} : { before: this.#seal(before) }),
        ...(after === undefined ? {} : { after: this.#seal(after) }),
      })),
    };
    await this.#ensureHead();
    const { forUpdate } = this.#sql;
    return this.#sql.atomically(function* () {
      const found = yield* row(
        `SELECT value FROM keyv WHERE namespace = ? AND key = ?${forUpdate}`,
        entriesName,
        headKey,
      );
      const head = headOf(String(found?.['value']));
      if (head.revision !== base) return undefined;
      for (const { kind, name, after } of stored.changes)
        yield* put(entriesName, `${kind}:${name}`, after && JSON.stringify(after));
      const order = change.order?.after ?? head.order;
      yield* put(entriesName, headKey, JSON.stringify({ revision, order } satisfies Head));
      yield* put(historyName, historyKey(revision), JSON.stringify(stored));
      yield* rows(
        'DELETE FROM keyv WHERE namespace = ? AND key <= ?',
        historyName,
        historyKey(Math.max(0, revision - runtimeLimits.history)),
      );
      return revision;
    });
  }

  async history(limit: number, before?: number): Promise<readonly HistoryRecord[]> {
    const found = await this.#sql.run(() =>
      rows(
        'SELECT value FROM keyv WHERE namespace = ? AND key < ? ORDER BY key DESC LIMIT ?',
        historyName,
        before === undefined ? 'z' : historyKey(before),
        limit,
      ),
    );
    return found.map(({ value }) => this.#recordOf(String(value)));
  }

  async record(revision: number): Promise<HistoryRecord | undefined> {
    const found = await this.#sql.run(() =>
      row('SELECT value FROM keyv WHERE namespace = ? AND key = ?', historyName, historyKey(revision)),
    );
    return found === undefined ? undefined : this.#recordOf(String(found['value']));
  }

  get #sql() {
    return sqlOf(this.#stores.database);
  }

  /** Makes the row that all writers lock. */
  async #ensureHead(): Promise<void> {
    await this.#sql.run(() =>
      rows(
        'INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, NULL) ON CONFLICT (namespace, key) DO NOTHING',
        entriesName,
        headKey,
        JSON.stringify({ revision: 0, order: [] } satisfies Head),
      ),
    );
  }

  #seal({ value, sealed, ...entry }: RuntimeEntry): StoredEntry {
    if (value === undefined) {
      if (sealed === undefined) throw new Error('An entry without a value cannot be written.');
      return { ...entry, sealed };
    }
    if (!sealedKinds.has(entry.kind)) return { ...entry, value };
    return { ...entry, sealed: this.#sealer.seal(purpose, ownerOf(entry), { value }) };
  }

  #open({ sealed, value, ...entry }: StoredEntry): RuntimeEntry {
    if (sealed === undefined) return { ...entry, value };
    const opened = this.#sealer.open(purpose, ownerOf(entry), sealed)?.['value'];
    return { ...entry, value: opened, ...(opened === undefined ? { sealed } : {}) };
  }

  #recordOf(text: string): HistoryRecord {
    const { changes, ...record } = JSON.parse(text) as StoredRecord;
    return {
      ...record,
      changes: changes.map(({ kind, name, before, after }) => ({
        kind,
        name,
        ...(before === undefined ? {} : { before: this.#open(before) }),
        ...(after === undefined ? {} : { after: this.#open(after) }),
      })),
    };
  }
}

/** Writes a row, or deletes it where there is no text. */
function* put(namespace: string, key: string, text: string | undefined): Work<void> {
  if (text === undefined) {
    yield* rows('DELETE FROM keyv WHERE namespace = ? AND key = ?', namespace, key);
    return;
  }
  yield* rows(
    `INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, NULL)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
    namespace,
    key,
    text,
  );
}

/** Keys of the history sort as their revisions do. */
function historyKey(revision: number): string {
  return revision.toString().padStart(12, '0');
}

function ownerOf({ kind, name }: Pick<RuntimeEntry, 'kind' | 'name'>): string {
  return `${kind}:${name}`;
}

function headOf(text: string): Head {
  const { revision, order }: JsonObject = parseObject(text) ?? {};
  return {
    revision: typeof revision === 'number' ? revision : 0,
    order: Array.isArray(order) ? order.filter((name) => typeof name === 'string') : [],
  };
}
