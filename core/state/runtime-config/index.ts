/** The contract of the store of run-time configuration: what administrators have changed beside the config file. */
import type { JsonValue } from '../../model/json.ts';

/** The kinds of entries. */
export const entryKinds = ['channel', 'alias', 'price', 'access', 'plugin'] as const;

/** Kind of an entry. A `plugin` entry is one option of a plugin; its name is `plugin.option`. */
export type EntryKind = (typeof entryKinds)[number];

/** Limits of the run-time part. Every worker holds all of it. */
export const runtimeLimits = {
  entries: 10_000,
  channels: 1_000,
  entryBytes: 64 * 1024,
  bytes: 16 * 1024 * 1024,
  nameLength: 200,
  history: 500,
} as const;

/** Name of an entry. */
export interface EntryName {
  readonly kind: EntryKind;
  readonly name: string;
}

/** One entry. Times are in milliseconds since 1970. */
export interface RuntimeEntry extends EntryName {
  /** Undefined: the stored value cannot be opened, because it was sealed under another secret. */
  readonly value: JsonValue | undefined;
  /** The stored text of a value that cannot be opened. It is written back as it is. */
  readonly sealed?: string;
  /** When each secret of the value was set, by its path. */
  readonly secretsAt: Readonly<Record<string, number>>;
  readonly enabled: boolean;
  /** 1 for a new entry, and one more with each change. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** All entries as they were at one moment. */
export interface RuntimeSnapshot {
  /** Number of changes so far. */
  readonly revision: number;
  readonly entries: readonly RuntimeEntry[];
  /** Names of channels in their order. Channels that are not named come after them, the oldest first. */
  readonly order: readonly string[];
  /** Bytes of all entries as they are stored. */
  readonly bytes: number;
}

/** One entry before and after a change. Absent: there was none. */
export interface EntryChange extends EntryName {
  readonly before?: RuntimeEntry;
  readonly after?: RuntimeEntry;
}

/** Kind of a change. */
export type RuntimeAction = 'create' | 'update' | 'enable' | 'disable' | 'delete' | 'reorder' | 'undo';

/** A change as it is written, and as the history tells it. */
export interface RuntimeChange {
  readonly action: RuntimeAction;
  readonly actor: string;
  readonly changes: readonly EntryChange[];
  /** The order of the channels before and after, where it was changed. */
  readonly order?: { readonly before: readonly string[]; readonly after: readonly string[] };
}

/** A change that was made. */
export interface HistoryRecord extends RuntimeChange {
  /** The revision that the change led to. */
  readonly revision: number;
  readonly at: number;
}

/** The run-time part in the database. */
export interface RuntimeConfigStore {
  /** Returns all entries of one moment. */
  read(): Promise<RuntimeSnapshot>;
  revision(): Promise<number>;
  /** Runs work while nobody else does, in any process. Rejects where others do not come to an end. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Writes a change, all or nothing, if the revision is still `base`. Returns the new revision; undefined if somebody else has written. */
  write(base: number, change: RuntimeChange): Promise<number | undefined>;
  /** Returns the newest records, those before a revision where one is given. */
  history(limit: number, before?: number): Promise<readonly HistoryRecord[]>;
  /** Returns one record; undefined if there is none, or it was removed. */
  record(revision: number): Promise<HistoryRecord | undefined>;
}
