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

/** What is told about a failure that no caller is waiting to hear of. */
export type ReportError = (error: Error) => void;

/** The database as named collections of entries; one per process, shared by all who keep state in it. */
export interface Stores {
  /** For what does not fit in entries and needs tables of its own. */
  readonly database: Database;
  /**
   * The entries under this name: lower-case letters, digits and hyphens. Times to live are in milliseconds.
   * A database failure rejects the call that met it; an entry whose text is damaged reads as undefined and is reported.
   */
  namespace<Value>(name: string): Keyv<Value>;
  /** Writes an entry unless there is one under this key, whoever else tries at the same time. Says whether it did. */
  add<Value>(name: string, key: string, value: Value, ttl?: number): Promise<boolean>;
  /** Writes new entries in one transaction. Returns false, and writes none, where there is an entry already. */
  addAll(entries: readonly NewEntry[]): Promise<boolean>;
  /**
   * Changes an entry by what it is, so that nothing that others write meanwhile is lost, and an entry that they delete stays deleted:
   * then `change` is asked again, with what stands there now. Gives what was written; undefined when nothing was, because there is no
   * entry or `change` wanted none of it.
   */
  change<Value>(
    name: string,
    key: string,
    change: (value: Value) => EntryChange<Value> | undefined,
  ): Promise<Value | undefined>;
  /**
   * Removes an entry. `before` sees it as it is right before, and throws where it must stay; where somebody writes to the entry meanwhile,
   * `before` is called again. Says whether there was an entry.
   */
  remove<Value>(name: string, key: string, before: (value: Value) => Promise<void> | void): Promise<boolean>;
  /**
   * A number that changes with every write to a namespace, by this process or another. Whoever keeps a copy in memory
   * remembers it before reading the entries, and reads them again when it has changed.
   */
  revision(name: string): Promise<number>;
  /**
   * The entries that were written to a namespace since a revision of it, by anybody, with undefined for those that are gone or damaged, and the
   * revision that they lead to. Undefined where it is not known, or so much that the whole namespace is to be read.
   */
  changes<Value>(name: string, since: number): Promise<Changes<Value> | undefined>;
  /**
   * Opens a collection of vectors. Resolves with undefined where the database is SQLite. Rejects with a sentence for the operator where
   * PostgreSQL cannot keep vectors.
   */
  vectors(name: string, limits: VectorLimits): Promise<VectorStore | undefined>;
  /** Resolves once the database has answered and has its tables. Rejects with a sentence for the operator. */
  ready(): Promise<void>;
  /** Rejects while the database does not take writes. It is asked at most once a second, however many want to know. */
  health(): Promise<void>;
  /** Closes the database; what is asked of the stores afterwards is rejected. */
  close(): Promise<void>;
}

/** What was written to a namespace. */
export interface Changes<Value> {
  readonly revision: number;
  readonly entries: readonly (readonly [key: string, value: Value | undefined])[];
}

/** What an entry becomes: its value, for how many milliseconds it is kept (absent: for good), and the key under which, if it moves. */
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

/** A new entry of any namespace, for good. */
export interface NewEntry {
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
}

/** Expired entries are removed in batches of a few milliseconds, because the event loop stands still meanwhile. */
const SWEEP = { batch: 500, forgotten: 5_000, pause: 60_000, pauseWhenFull: 200 };

const HEALTH_EVERY = 1_000;

/**
 * Opens the database of these settings (see `openDatabase`), and removes expired entries from it while it is open. A server is connected to
 * by whoever asks first: a start waits for `ready`, so that one that is down is told at once.
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
  // A write, because a disk that is full and a server that only reads do answer questions.
  const health = openNamespace<number>(database, 'health', report);
  let asked: { readonly at: number; readonly answer: Promise<void> } | undefined;
  return {
    database,
    namespace: (name) => openNamespace(database, name, report),
    ...entryWrites(database, report),
    revision: async (name) =>
      database.kind === 'sqlite' ? revisionOf(database, name) : revisionInPostgres(database, name),
    async changes<Value>(name: string, since: number) {
      const told = await changesSince(database, name, since);
      if (told === undefined) return undefined;
      const store = openNamespace<Value>(database, name, report);
      const entries = await Promise.all(
        told.entries.map(async ([key, text]) => {
          const read = text === undefined ? undefined : await store.deserializeData<Value>(text);
          return [key, read?.value] as const;
        }),
      );
      return { revision: told.revision, entries };
    },
    vectors: async (name, limits) => {
      checkName(name);
      return vectors.open(name, limits);
    },
    ready: async () => {
      if (database.kind === 'postgres') await database.ready();
    },
    health: async () => {
      if (asked === undefined || Date.now() - asked.at >= HEALTH_EVERY)
        asked = { at: Date.now(), answer: health.set('written', Date.now()).then(() => {}) };
      return asked.answer;
    },
    close: async () => {
      stopSweeping();
      vectors.close();
      await database.close();
    },
  };
}

/** Writes entries of any namespace. */
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
        const place = { namespace, key };
        const written =
          newKey === key
            ? await replaceEntry(database, place, before, entry)
            : await moveEntry(database, place, before, newKey, entry, beside && (await storedBeside(beside)));
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

/** An entry as Keyv would write it. */
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
 * The entries of a namespace one by one, in no promised order, with undefined in place of a damaged value.
 * Entries may be written meanwhile.
 */
export async function* entriesOf<Value>(
  store: Keyv<Value>,
): AsyncGenerator<[key: string, value: Value | undefined], void> {
  if (store.iterator === undefined) throw new Error('This store cannot list its entries.');
  yield* store.iterator(undefined);
}

function openNamespace<Value>(database: Database, name: string, report: ReportError): Keyv<Value> {
  checkName(name);
  const store = new Keyv<Value>({
    store: database.kind === 'sqlite' ? new SqliteKeyv(database) : new PostgresKeyv(database),
    namespace: name,
    // The table has a column for the namespace. Keyv's prefixes would make keys ambiguous that look prefixed already.
    useKeyPrefix: false,
    // Otherwise Keyv turns a database that fails into an entry that does not exist, and a lost write into nothing.
    throwOnErrors: true,
  });
  const deserialize = store.deserialize;
  store.deserialize = async (text) => {
    try {
      return await deserialize?.(text);
    } catch (error) {
      report(
        new Error(`An entry of "${name}" in ${database.url} is damaged and counts as missing.`, {
          cause: error,
        }),
      );
      // Not undefined: Keyv's iterator would fail on it and hide the entries that follow.
      return {};
    }
  };
  return store;
}

function checkName(name: string): void {
  if (!/^[a-z][a-z0-9-]*$/.test(name))
    throw new Error(`"${name}" cannot name a namespace: use lower-case letters, digits and hyphens.`);
}
