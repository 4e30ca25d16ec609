import type { Step } from '../database/migrations.ts';
import type { ArchiveWriter, Header, Value } from './archive.ts';

/** A database that is saved. */
export interface Source {
  readonly kind: Header['kind'];
  /** Names of the steps that it has. */
  steps(): Promise<readonly string[]>;
  /** Writes all of its tables, as they were at one moment. */
  save(writer: ArchiveWriter): Promise<void>;
  close(): Promise<void>;
}

/** A database that is filled. It is as before until {@link Target.finish}. */
export interface Target {
  isEmpty(): Promise<boolean>;
  /** Makes the tables of these steps, in place of those that are there. */
  make(steps: readonly Step[]): Promise<void>;
  fill(
    table: string,
    columns: readonly string[],
  ): Promise<{ add(values: readonly Value[]): Promise<void>; done(): Promise<void> }>;
  count(table: string): Promise<number>;
  /** Puts the new tables in the place of the old ones. Returns where the old ones are kept, if they are. */
  finish(): Promise<string | undefined>;
  close(): Promise<void>;
}
