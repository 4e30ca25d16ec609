/** The database as namespaces of key-value entries (Keyv), with conditional writes, revisions, vectors and a health check. */
import { Keyv } from 'keyv';
import type { VectorLimits, VectorStore } from '../sdk/author/vectors.ts';
import type { DatabaseSettings } from '../settings/database.ts';
import { openDatabase, type Database } from './database/index.ts';
import { changesSince, forgetChanges } from './keyv/changes.ts';
import { insertEntries, insertEntry, moveEntry, removeEntry, replaceEntry } from './keyv/entry-writes.ts';
import { deleteExpiredInPostgres, PostgresKeyv, revisionInPostgres } from './keyv/postgres.ts';
import { deleteExpired, revisionOf, SqliteKeyv } from './keyv/sqlite.ts';
import { startSweeping } from './database/sweeping.ts';
import { createVectorOpener } from './vectors/open.ts';

/** Reports an error of work for which no caller waits. */
export type ReportError = (error: Error) => void;

/** The stores of a process, shared by all parts that keep state. */
export interface Stores {
  /** For state that needs tables of its own. */
  readonly database: Database;
  /**
   * The entries under this name: lower-case letters, digits and hyphens. Times to live are in milliseconds.
   * A database failure rejects the call that met it; an entry whose text is damaged reads as undefined and is reported.
   */
  namespace<Value>(name: string): Keyv<Value>;
  /** Writes an entry unless there is one under this key, atomically. Returns true when it did. */
  add<Value>(name: string, key: string, value: Value, ttl?: number): Promise<boolean>;
  /** Writes new entries in one transaction. Returns false, and writes none, where there is an entry already. */
  addAll(entries: readonly NewEntry[]): Promise<boolean>;
  /**
   * Changes an entry depending on its value (compare and swap): when another process writes meanwhile, `change` is called again with the new
   * value; an entry that it deletes stays deleted. Returns the written value; undefined when there is no entry or `change` returns undefined.
   */
  change<Value>(
    name: string,
    key: string,
    change: (value: Value) => EntryChange<Value> | undefined,
  ): Promise<Value | undefined>;
  /**
   * Removes an entry. `before` receives its value, and throws where the entry must stay; it is called again when another process writes
   * meanwhile. Returns true when there was an entry.
   */
  remove<Value>(name: string, key: string, before: (value: Value) => Promise<void> | void): Promise<boolean>;
  /**
   * Returns a number that changes with every write to a namespace, by this process or another. A cache stores it before it reads the entries,
   * and reads them again when it has changed.
   */
  revision(name: string): Promise<number>;
  /**
   * Returns the entries that any process has written to a namespace since a revision, with undefined for those that are gone or damaged, and
   * the new revision. Undefined where they are not known, or so many that the whole namespace should be read.
   */
  changes<Value>(name: string, since: number): Promise<Changes<Value> | undefined>;
  /**
   * Opens a collection of vectors. Resolves with undefined where the database is SQLite. Rejects with a sentence for the operator where
   * PostgreSQL cannot keep vectors.
   */
  vectors(name: string, limits: VectorLimits): Promise<VectorStore | undefined>;
  /** Resolves once the database has answered and has its tables. Rejects with a sentence for the operator. */
  ready(): Promise<void>;
  /** Rejects while the database does not accept writes. Checks at most once a second. */
  health(): Promise<void>;
  /** Closes the database; later operations are rejected. */
  close(): Promise<void>;
}

/** Changed entries of a namespace. */
export interface Changes<Value> {
  readonly revision: number;
  readonly entries: readonly (readonly [key: string, value: Value | undefined])[];
}

/** New value of an entry, its time to live in milliseconds (absent: unlimited), and its new key, if it moves. */
export interface EntryChange<Value> {
  readonly value: Value;
  readonly ttl?: number;
  readonly key?: string;
  /** Another entry that is written in the same transaction as one that moves. */
  readonly beside?: OtherEntry;
}

/** An entry of any namespace. Without a value it is removed. */
export interface OtherEntry {
  readonly namespace: string;
  readonly key: string;
  readonly value?: unknown;
  readonly ttl?: number;
}

/** A new entry of any namespace, without an expiry. */
export interface NewEntry {
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
}

/** Expired entries are removed in batches of a few milliseconds, because SQLite blocks the event loop meanwhile. */
const SWEEP = { batch: 500, forgotten: 5_000, pause: 60_000, pauseWhenFull: 200 };

const HEALTH_EVERY = 1_000;

/**
 * Opens the database of these settings (see `openDatabase`), and removes expired entries from it while it is open. The first statement connects
 * to a server: a start waits for `ready`, so that an unavailable server is reported at once.
 */
export function openStores(target: DatabaseSettings, report: ReportError = () => {}): Stores {
  const database = openDatabase(target, report);
  const stopSweeping = startSweeping(
    async () => {
      const found =
        database.kind === 'sqlite'
          ? await deleteExpired(database, SWEEP.batch)
          : await deleteExpiredInPostgres(database, SWEEP.batch);
      if (found < SWEEP.batch) await forgetChanges(database, SWEEP.forgotten);
      return found === SWEEP.batch;
    },
    SWEEP,
    (cause) => report(new Error(`Expired entries could not be removed from ${database.url}.`, { cause })),
  );
  const vectors = createVectorOpener(database, report);
  // A write, because a full disk or a read-only server still answers reads.
  const health = openNamespace<number>(database, 'health', report);
  let lastCheck: { readonly at: number; readonly answer: Promise<void> } | undefined;
  return {
    database,
    namespace: (name) => openNamespace(database, name, report),
    ...entryWrites(database, report),
    revision: async (name) =>
      database.kind === 'sqlite' ? revisionOf(database, name) : revisionInPostgres(database, name),
    async changes<Value>(name: string, since: number) {
      const changes = await changesSince(database, name, since);
      if (changes === undefined) return undefined;
      const store = openNamespace<Value>(database, name, report);
      const entries = await Promise.all(
        changes.entries.map(async ([key, text]) => {
          const read = text === undefined ? undefined : await store.deserializeData<Value>(text);
          return [key, read?.value] as const;
        }),
      );
      return { revision: changes.revision, entries };
    },
    vectors: async (name, limits) => {
      checkName(name);
      return vectors.open(name, limits);
    },
    ready: async () => {
      if (database.kind === 'postgres') await database.ready();
    },
    health: async () => {
      if (lastCheck === undefined || Date.now() - lastCheck.at >= HEALTH_EVERY)
        lastCheck = { at: Date.now(), answer: health.set('written', Date.now()).then(() => {}) };
      return lastCheck.answer;
    },
    close: async () => {
      stopSweeping();
      vectors.close();
      await database.close();
    },
  };
}

/** Returns the methods that write entries of any namespace. */
function entryWrites(
  database: Database,
  report: ReportError,
): Pick<Stores, 'add' | 'addAll' | 'change' | 'remove'> {
  const storedBeside = async ({ namespace, key, value, ttl }: OtherEntry) => ({
    namespace,
    key,
    entry:
      value === undefined
        ? undefined
        : await stored(openNamespace<unknown>(database, namespace, report), value, ttl),
  });
  return {
    async add(namespace, key, value, ttl) {
      const store = openNamespace<unknown>(database, namespace, report);
      return insertEntry(database, { namespace, key }, await stored(store, value, ttl));
    },
    async addAll(entries) {
      const all = await Promise.all(
        entries.map(async ({ namespace, key, value }) => ({
          namespace,
          key,
          entry: await stored(openNamespace<unknown>(database, namespace, report), value, undefined),
        })),
      );
      return insertEntries(database, all);
    },
    async change<Value>(
      namespace: string,
      key: string,
      change: (value: Value) => EntryChange<Value> | undefined,
    ) {
      const store = openNamespace<Value>(database, namespace, report);
      for (;;) {
        // oxlint-disable no-await-in-loop -- another turn only when somebody else has written meanwhile
        const before: string | undefined = await store.store.get(key);
        const read = before === undefined ? undefined : await store.deserializeData<Value>(before);
        if (before === undefined || read?.value === undefined) return undefined;
        const wanted = change(read.value);
        if (wanted === undefined) return undefined;
        const { value, ttl, key: newKey = key, beside } = wanted;
        const entry = await stored(store, value, ttl);
        const entryName = { namespace, key };
        const written =
          newKey === key
            ? await replaceEntry(database, entryName, before, entry)
            : await moveEntry(
                database,
                entryName,
                before,
                newKey,
                entry,
                beside && (await storedBeside(beside)),
              );
        if (written) return value;
        // oxlint-enable no-await-in-loop
      }
    },
    async remove<Value>(namespace: string, key: string, before: (value: Value) => Promise<void> | void) {
      const store = openNamespace<Value>(database, namespace, report);
      for (;;) {
        // oxlint-disable no-await-in-loop -- another turn only when somebody else has written meanwhile
        const text: string | undefined = await store.store.get(key);
        const read = text === undefined ? undefined : await store.deserializeData<Value>(text);
        if (text === undefined || read?.value === undefined) return false;
        await before(read.value);
        if (await removeEntry(database, { namespace, key }, text)) return true;
        // oxlint-enable no-await-in-loop
      }
    },
  };
}

/** Encodes an entry as Keyv does. */
async function stored<Value>(
  store: Keyv<Value>,
  value: Value,
  ttl: number | undefined,
): Promise<{ readonly value: string; readonly expires: number | null }> {
  const expires = ttl === undefined ? undefined : Math.ceil(Date.now() + ttl);
  const text = await store.serializeData(expires === undefined ? { value } : { value, expires });
  return { value: String(text), expires: expires ?? null };
}

/**
 * Yields the entries of a namespace, in no particular order, with undefined in place of a damaged value.
 * Entries may be written meanwhile.
 */
export async function* entriesOf<Value>(
  store: Keyv<Value>,
): AsyncGenerator<[key: string, value: Value | undefined], void> {
  if (store.iterator === undefined) throw new Error('This store cannot list its entries.');
  yield* store.iterator(undefined);
}

/**
 * Matches every stored text in which a text begins with a colon, which Keyv marks and takes back in a function that is called for each value: it
 * takes four times as long as the parser alone.
 */
const hasColonText = /[:,[]":|^":/;

function openNamespace<Value>(database: Database, name: string, report: ReportError): Keyv<Value> {
  checkName(name);
  const store = new Keyv<Value>({
    store: database.kind === 'sqlite' ? new SqliteKeyv(database) : new PostgresKeyv(database),
    namespace: name,
    // The table has a column for the namespace. With Keyv's prefixes, keys that look prefixed would be ambiguous.
    useKeyPrefix: false,
    // Otherwise Keyv hides errors of the database: reads return undefined and writes are lost. Keyv 6 lacks this option, and hides errors as soon as a
    // plugin that was given the store listens for them (tried with 6.1.0). It also needs Node 22.19, and changes what methods return that plugins call.
    throwOnErrors: true,
  });
  const deserialize = store.deserialize;
  store.deserialize = async (text) => {
    try {
      return hasColonText.test(text) ? await deserialize?.(text) : (JSON.parse(text) as never);
    } catch (error) {
      report(
        new Error(`An entry of "${name}" in ${database.url} is damaged and counts as missing.`, {
          cause: error,
        }),
      );
      // Not undefined, because Keyv's iterator would fail on it and hide the entries that follow.
      return {};
    }
  };
  return store;
}

function checkName(name: string): void {
  if (!/^[a-z][a-z0-9-]*$/.test(name))
    throw new Error(`"${name}" cannot name a namespace: use lower-case letters, digits and hyphens.`);
}
