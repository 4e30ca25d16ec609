import { Counter, type CounterConfiguration } from 'prom-client';

/** What was counted under one set of labels since somebody last looked. */
interface Leaf {
  readonly values: readonly string[];
  amount: number;
}

type Branch = Map<string, Branch | Leaf>;

/**
 * A counter with labels that hears of its sums when somebody looks. By itself it makes a text of all labels for each thing it counts, and
 * several are counted of a call.
 */
export class Tally {
  readonly #labels: readonly string[];
  readonly #root: Branch = new Map();
  readonly #leaves: Leaf[] = [];

  constructor({ labelNames, ...configuration }: CounterConfiguration<string> & { labelNames: string[] }) {
    this.#labels = labelNames;
    const counter: Counter = new Counter({
      ...configuration,
      labelNames,
      collect: () => this.#tell(counter),
    });
  }

  /** `values` are those of the labels, in their order. */
  add(amount: number, ...values: readonly string[]): void {
    let branch = this.#root;
    const last = values.length - 1;
    for (let index = 0; index < last; index += 1) {
      const value = values[index] ?? '';
      let next = branch.get(value);
      if (next === undefined) branch.set(value, (next = new Map()));
      branch = next as Branch;
    }
    const value = values[last] ?? '';
    const leaf = branch.get(value) as Leaf | undefined;
    if (leaf !== undefined) leaf.amount += amount;
    else {
      const made = { values, amount };
      branch.set(value, made);
      this.#leaves.push(made);
    }
  }

  #tell(counter: Counter): void {
    for (const leaf of this.#leaves) {
      if (leaf.amount === 0) continue;
      const named = this.#labels.map((label, index) => [label, leaf.values[index] ?? ''] as const);
      counter.inc(Object.fromEntries(named), leaf.amount);
      leaf.amount = 0;
    }
  }
}
