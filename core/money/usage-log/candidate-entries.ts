/** Entries of an index for the records of a filter. */
import type { Source } from './narrowing.ts';
import type { SubjectKind } from './subjects.ts';

const day = 86_400_000;

/** Entries of an index: all records of a time that fit a filter are among them. */
export interface Candidates {
  /** Returns the SELECT of entries, with a limit. It is written so that a server cannot take another index, and read more. */
  select(columns: string, since: number, until: number, limit: number): Source;
  /** True when its entries come in the order of time, the newest first. */
  readonly isOrdered: boolean;
  /** Property of records that the index is by. For all but measures the sums know the number of records. */
  readonly by: 'key' | 'owner' | 'names' | 'measure' | 'subject';
  /** Whose records it has, where it is by an owner or another subject. */
  readonly subject?: SubjectKind;
}

/** True for entries that are by an owner, a tag or an end user. */
export function isOfSubject({ subject }: Candidates): boolean {
  return subject !== undefined;
}

/**
 * Days of partitions, where an index is not in the order of time or has another column before it. A server that is told the exact time may read
 * all records of that time instead.
 */
export function daysOf(since: number, until: number): readonly number[] {
  return [Math.floor(since / day) * day, Math.ceil(until / day) * day];
}
