/** Interfaces of the two ends of a backup: the database that is saved, and the database that a restore fills. */
import type { Step } from '../database/migrations.ts';
import type { ArchiveWriter, Header, Value } from './archive.ts';

/** A database that is saved. */
export interface Source {
  readonly kind: Header['kind'];
  /**
   * Writes the header with the migration steps of the database, and all of its tables, from one snapshot. Rejects for a database that has no
   * tables of Sluice.
   */
  save(writer: ArchiveWriter): Promise<void>;
  close(): Promise<void>;
}

/** A database that a restore fills. It does not change before {@link Target.finish}. */
export interface Target {
  isEmpty(): Promise<boolean>;
  /** Creates the tables of these migration steps, which replace the tables that exist. */
  make(steps: readonly Step[]): Promise<void>;
  fill(
    table: string,
    columns: readonly string[],
  ): Promise<{ add(values: readonly Value[]): Promise<void>; done(): Promise<void> }>;
  count(table: string): Promise<number>;
  /** Replaces the old tables with the new ones. Returns the path under which the old file is kept; undefined where nothing is kept. */
  finish(): Promise<string | undefined>;
  close(): Promise<void>;
}
