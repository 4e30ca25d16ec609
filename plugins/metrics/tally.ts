import { Counter, type CounterConfiguration, type Histogram, type Registry } from 'prom-client';

/** What a {@link Timing} measures, by which labels. */
interface TimingOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: readonly Registry[];
  /** Upper bounds, in seconds, lowest first. */
  readonly buckets: readonly number[];
}

type Branch<Leaf> = Map<string, Branch<Leaf> | Leaf>;

/** Finds what is counted under one set of labels, without making a text of them all: several things are counted of each call. */
class Leaves<Leaf extends object> {
  readonly #names: readonly string[];
  readonly #make: () => Leaf;
  readonly #root: Branch<Leaf> = new Map();
  readonly #all: { readonly values: readonly string[]; readonly leaf: Leaf }[] = [];

  constructor(names: readonly string[], make: () => Leaf) {
    this.#names = names;
    this.#make = make;
  }

  /** `values` are those of the labels, in their order. */
  at(values: readonly string[]): Leaf {
    let branch = this.#root;
    const last = values.length - 1;
    for (let index = 0; index < last; index += 1) {
      const value = values[index] ?? '';
      let next = branch.get(value);
      if (next === undefined) branch.set(value, (next = new Map()));
      branch = next as Branch<Leaf>;
    }
    const value = values[last] ?? '';
    let leaf = branch.get(value) as Leaf | undefined;
    if (leaf === undefined) {
      branch.set(value, (leaf = this.#make()));
      this.#all.push({ values, leaf });
    }
    return leaf;
  }

  /** All of them, with their labels. */
  *named(): Generator<readonly [labels: Record<string, string>, leaf: Leaf]> {
    for (const { values, leaf } of this.#all)
      yield [Object.fromEntries(this.#names.map((name, index) => [name, values[index] ?? ''])), leaf];
  }
}

/** A counter with labels that hears of its sums when somebody looks. */
export class Tally {
  readonly #leaves: Leaves<{ amount: number }>;

  constructor({ labelNames, ...configuration }: CounterConfiguration<string> & { labelNames: string[] }) {
    this.#leaves = new Leaves(labelNames, () => ({ amount: 0 }));
    const counter: Counter = new Counter({
      ...configuration,
      labelNames,
      collect: () => {
        for (const [labels, leaf] of this.#leaves.named()) {
          if (leaf.amount === 0) continue;
          counter.inc(labels, leaf.amount);
          leaf.amount = 0;
        }
      },
    });
  }

  /** `values` are those of the labels, in their order. */
  add(amount: number, ...values: readonly string[]): void {
    this.#leaves.at(values).amount += amount;
  }
}

/** How many took how long: the last count is of those beyond all bounds. */
interface Times {
  readonly counts: number[];
  sum: number;
}

/** Seconds by labels, in buckets with these upper bounds: a histogram as Prometheus has it, for the library that writes it out. */
export class Timing {
  readonly name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #leaves: Leaves<Times>;

  constructor({ name, help, labelNames, registers, buckets }: TimingOptions) {
    this.name = name;
    this.#help = help;
    this.#bounds = buckets;
    this.#leaves = new Leaves(labelNames, () => ({
      counts: Array.from({ length: buckets.length + 1 }, () => 0),
      sum: 0,
    }));
    // A registry asks its metrics for nothing but their name and `get`.
    for (const registry of registers) registry.registerMetric(this as unknown as Histogram);
  }

  /** `values` are those of the labels, in their order. */
  observe(seconds: number, ...values: readonly string[]): void {
    const times = this.#leaves.at(values);
    const bounds = this.#bounds;
    let place = 0;
    while (place < bounds.length && seconds > (bounds[place] ?? Infinity)) place += 1;
    times.counts[place] = (times.counts[place] ?? 0) + 1;
    times.sum += seconds;
  }

  /** What prom-client writes out. */
  get(): Promise<object> {
    const values: object[] = [];
    for (const [labels, { counts, sum }] of this.#leaves.named()) {
      let count = 0;
      for (const [place, more] of counts.entries()) {
        count += more;
        const le = this.#bounds[place] ?? '+Inf';
        values.push({ labels: { le, ...labels }, value: count, metricName: `${this.name}_bucket` });
      }
      values.push({ labels, value: sum, metricName: `${this.name}_sum` });
      values.push({ labels, value: count, metricName: `${this.name}_count` });
    }
    return Promise.resolve({
      name: this.name,
      help: this.#help,
      type: 'histogram',
      aggregator: 'sum',
      values,
    });
  }
}
