import type { UsageFilter, UsageGrouping, UsageSums } from './index.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import { conditions, hasFailed, rangeOf, sliceEnd, type Ask } from './questions.ts';
import { middleOf, type Row } from './rows.ts';

/** More groups than anybody looks at: callers can ask for any number of models that do not exist. The others are summed as one. */
const mostGroups = 5_000;
const others = '…';

const columns = {
  keyId: 'key_id',
  model: 'model',
  channel: 'channel',
  format: 'format',
  status: 'status',
} as const;

/**
 * Adds up records by groups. What is asked at once about the same records, as an overview does, is answered by reading them once. They are
 * read in slices, so that calls go on between them however many there are.
 */
export function createSums(
  ask: Ask,
): (filter: UsageFilter, grouping: UsageGrouping) => Promise<readonly UsageSums[]> {
  const waiting = new Map<string, { readonly tables: Table[]; readonly done: Promise<void> }>();
  return async (filter, grouping) => {
    const name = JSON.stringify(filter);
    const table = new Table(grouping);
    let pass = waiting.get(name);
    if (pass === undefined) {
      const tables: Table[] = [];
      const begin = async (): Promise<void> => {
        await yieldTurn();
        waiting.delete(name);
        await fill(ask, filter, tables);
      };
      waiting.set(name, (pass = { tables, done: begin() }));
    }
    pass.tables.push(table);
    await pass.done;
    return table.told();
  };
}

async function fill(ask: Ask, filter: UsageFilter, tables: readonly Table[]): Promise<void> {
  const needed = new Set(tables.map(({ column }) => column));
  const { start, end } = rangeOf(filter);
  let since = start;
  while (since < end) {
    const until = await sliceEnd(ask, since, end);
    const { where, values } = conditions({ ...filter, since, until });
    const rows = await ask(
      `SELECT ${[...needed].join(', ')}, CASE WHEN ${hasFailed} THEN 1 ELSE 0 END AS failed,
         input, output, micro_dollars, ms_bin, first_bin FROM usage_records ${where}`,
      values,
    );
    for (const row of rows) {
      const counts = countsOf(row);
      for (const table of tables) table.add(row[table.column], counts);
    }
    since = until;
    if (since < end) await yieldTurn();
  }
}

/** The groups of one grouping, as they grow. */
class Table {
  readonly #bucket: number | undefined;
  readonly #isNumber: boolean;
  readonly #groups = new Map<unknown, Group>();
  /** The column by which records are told apart. */
  readonly column: string;

  constructor(grouping: UsageGrouping) {
    this.#bucket = typeof grouping === 'object' ? Math.max(1, Math.trunc(grouping.bucket)) : undefined;
    this.#isNumber = typeof grouping === 'object' || grouping === 'status';
    this.column = typeof grouping === 'object' ? 'at' : columns[grouping];
  }

  add(value: unknown, counts: Counts): void {
    let name = this.#bucket === undefined ? value : Math.floor(Number(value) / this.#bucket);
    let group = this.#groups.get(name);
    if (group === undefined) {
      if (this.#groups.size >= mostGroups) name = others;
      group = this.#groups.get(name) ?? new Group();
      this.#groups.set(name, group);
    }
    group.add(counts);
  }

  told(): readonly UsageSums[] {
    const all = [...this.#groups].map(([name, group]) =>
      group.told(this.#isNumber && name !== others ? Number(name) * (this.#bucket ?? 1) : String(name ?? '')),
    );
    return this.#bucket === undefined
      ? all.toSorted((one, other) => other.calls - one.calls)
      : all.toSorted((one, other) => Number(one.group) - Number(other.group));
  }
}

/** What one record adds. */
interface Counts {
  readonly failed: number;
  readonly input: number;
  readonly output: number;
  readonly microDollars: number;
  readonly msBin: number;
  /** -1 when it was not measured. */
  readonly firstBin: number;
}

/** Read once for all groupings: the driver's rows are slow to read from. */
function countsOf(row: Row): Counts {
  return {
    failed: Number(row['failed']),
    input: Number(row['input']),
    output: Number(row['output']),
    microDollars: Number(row['micro_dollars'] ?? 0),
    msBin: Number(row['ms_bin']),
    firstBin: Number(row['first_bin'] ?? -1),
  };
}

/** Sums of one group. Times are counted by their bins, from which percentiles can be read without sorting anything. */
class Group {
  #calls = 0;
  #failed = 0;
  #input = 0;
  #output = 0;
  #microDollars = 0;
  readonly #ms: number[] = [];
  readonly #firstMs: number[] = [];

  add({ failed, input, output, microDollars, msBin, firstBin }: Counts): void {
    this.#calls += 1;
    this.#failed += failed;
    this.#input += input;
    this.#output += output;
    this.#microDollars += microDollars;
    count(this.#ms, msBin);
    if (firstBin >= 0) count(this.#firstMs, firstBin);
  }

  told(group: string | number): UsageSums {
    return {
      group,
      calls: this.#calls,
      failed: this.#failed,
      input: this.#input,
      output: this.#output,
      microDollars: this.#microDollars,
      ms: percentiles(this.#ms),
      firstMs: percentiles(this.#firstMs),
    };
  }
}

function count(bins: number[], bin: number): void {
  while (bins.length <= bin) bins.push(0);
  bins[bin] = (bins[bin] ?? 0) + 1;
}

function percentiles(bins: readonly number[]): readonly [number, number, number] {
  const total = bins.reduce((sum, calls) => sum + calls, 0);
  const at = (share: number): number => {
    let seen = 0;
    for (const [bin, calls] of bins.entries()) {
      seen += calls;
      if (calls > 0 && seen >= share * total) return Math.round(middleOf(bin) * 10) / 10;
    }
    return 0;
  };
  return [at(0.5), at(0.95), at(0.99)];
}
