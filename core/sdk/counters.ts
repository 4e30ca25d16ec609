import type { CountedSeries, PluginCounter, PluginMetrics } from './author/metrics.ts';

/** Maximum number of series of one counter. */
const maxSeries = 100;

/** Value of every label of the series that counts what no other series has room for. */
const other = 'other';

/** The counters that the plugins of one gateway have declared, for the plugin that publishes them. */
export class PluginCounters {
  readonly #counters = new Map<string, Counter>();

  /** Returns the counters of one plugin. */
  of(plugin: string): PluginMetrics {
    return {
      counter: (name, help, labelNames = []) => {
        for (const one of [name, ...labelNames])
          if (!/^[a-z][a-z0-9_]*$/.test(one))
            throw new Error(`"${one}" is not a valid name of a counter or label: use a-z, 0-9 and _.`);
        const full = `sluice_plugin_${plugin.replaceAll(/[^a-z0-9]/g, '_')}_${name}_total`;
        if (this.#counters.has(full)) throw new Error(`The plugin has a counter "${name}" already.`);
        const counter = new Counter(full, help, labelNames);
        this.#counters.set(full, counter);
        return counter;
      },
      all: () => this.all(),
    };
  }

  /** Returns every counter as it stands. */
  all(): readonly CountedSeries[] {
    return [...this.#counters.values()];
  }
}

/** A counter with a bounded number of series. */
class Counter implements PluginCounter, CountedSeries {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly #series = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();

  constructor(name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
  }

  get series(): CountedSeries['series'] {
    return [...this.#series.values()];
  }

  add(labels: Readonly<Record<string, string>> = {}, amount = 1): void {
    if (!(amount >= 0)) throw new Error(`A counter cannot be raised by ${amount}.`);
    this.#one(this.labelNames.map((name) => labels[name] ?? '')).value += amount;
  }

  #one(values: readonly string[]): { value: number } {
    const key = JSON.stringify(values);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (this.#series.size >= maxSeries && values.some((value) => value !== other))
      return this.#one(values.map(() => other));
    const labels = Object.fromEntries(this.labelNames.map((name, index) => [name, values[index] ?? '']));
    const made = { labels, value: 0 };
    this.#series.set(key, made);
    return made;
  }
}
