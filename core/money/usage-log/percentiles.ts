import { middleOf } from './rows.ts';

/** Calls counted by bins of their time, from which percentiles can be read without sorting anything. */
export class Percentiles {
  readonly #calls = new Map<number, number>();

  add(bin: number, calls: number): void {
    this.#calls.set(bin, (this.#calls.get(bin) ?? 0) + calls);
  }

  /** Milliseconds at the 50th, 95th and 99th percentile; zeros where nothing was measured. */
  told(): readonly [number, number, number] {
    const bins = [...this.#calls].toSorted(([one], [other]) => one - other);
    const total = bins.reduce((sum, [, calls]) => sum + calls, 0);
    const at = (share: number): number => {
      let seen = 0;
      for (const [bin, calls] of bins) {
        seen += calls;
        if (calls > 0 && seen >= share * total) return Math.round(middleOf(bin) * 10) / 10;
      }
      return 0;
    };
    return [at(0.5), at(0.95), at(0.99)];
  }
}
