/** The indexes of records by kind, failure, duration, cost, end user and tag, and whether a database has them already. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageFilter, UsageMeasure } from './index.ts';
import type { Source } from './narrowing.ts';
import { firstOfSubjects, lackingNumbers } from './partition-indexes.ts';

/** Smallest values that the indexes of SQLite have: all calls in them would cost as much as the rest of the writing. */
const floors: Readonly<Record<Database['kind'], Readonly<Record<UsageMeasure, number>>>> = {
  sqlite: { ms: 30_000, microDollars: 100_000 },
  postgres: { ms: Number.NEGATIVE_INFINITY, microDollars: Number.NEGATIVE_INFINITY },
};

/** How long a database that lacks indexes is not asked again, and one that has them, in milliseconds. */
const pauses = { lacking: 10_000, made: 600_000 } as const;

const columns = { ms: 'ms', microDollars: 'micro_dollars' } as const;

/** A condition that an index of a measure serves. */
export interface Measured extends Source {
  readonly column: string;
  /** Its name in SQLite. */
  readonly index: string;
}

/** Indexes of a database, as far as they are known. */
export interface RecordIndexes {
  /** False while older partitions of a server have none yet. Those by end users and tags are asked for by themselves. */
  areMade(of?: 'subjects'): Promise<boolean>;
  /** The smallest value that the index of a measure has. */
  floor(by: UsageMeasure): number;
  /** The condition of a measure's index for a filter that has a lower bound of it. */
  measured(by: UsageMeasure, filter: UsageFilter): Measured | undefined;
}

/** Looks after the indexes of a database. */
export function createRecordIndexes(kind: Database['kind'], query: Query): RecordIndexes {
  let lacking: Promise<readonly number[]> | undefined;
  const look = async (): Promise<readonly number[]> => {
    const numbers = await lackingNumbers(query);
    setTimeout(() => (lacking = undefined), numbers.length === 0 ? pauses.made : pauses.lacking).unref();
    return numbers;
  };
  return {
    async areMade(of) {
      if (kind === 'sqlite') return true;
      lacking ??= look();
      try {
        const isOfSubjects = of === 'subjects';
        return !(await lacking).some((number) => number >= firstOfSubjects === isOfSubjects);
      } catch (error) {
        lacking = undefined;
        throw error;
      }
    },
    floor: (by) => floors[kind][by],
    measured(by, filter) {
      const least = by === 'ms' ? filter.minMs : filter.minMicroDollars;
      const most = by === 'ms' ? filter.maxMs : filter.maxMicroDollars;
      if (least === undefined || least < floors[kind][by]) return undefined;
      return {
        // SQLite searches by the first of two lower bounds.
        sql: `${columns[by]} >= ?${most === undefined ? '' : ` AND ${columns[by]} <= ?`} AND ${indexed(kind, by)}`,
        values: [least, ...(most === undefined ? [] : [most])],
        column: columns[by],
        index: `usage_records_${columns[by]}`,
      };
    },
  };
}

/** The condition of the index itself, in its own words. */
export function indexed(kind: Database['kind'], by: UsageMeasure): string {
  return kind === 'sqlite' ? `${columns[by]} >= ${floors.sqlite[by]}` : `${columns[by]} IS NOT NULL`;
}
