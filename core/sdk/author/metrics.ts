/**
 * A counter of a plugin. It only grows.
 *
 * @example
 * const calls = metrics.counter('calls', 'Calls by result: hit or miss.', ['result']);
 * calls.add({ result: 'hit' });
 */
export interface PluginCounter {
  /** Adds to the series with these labels: 1, or `amount`, which is not negative. Labels that are left out are empty. */
  add(labels?: Readonly<Record<string, string>>, amount?: number): void;
}

/**
 * A counter of a plugin as it stands.
 *
 * @example
 * const total = counted.series.reduce((sum, { value }) => sum + value, 0);
 */
export interface CountedSeries {
  /** `sluice_plugin_cache_calls_total`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Those that have counted something. */
  readonly series: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

/**
 * Declares what a plugin counts. The plugin `metrics` publishes it, the sum of all workers; where that is off it costs an addition.
 *
 * @example
 * const refused = metrics.counter('refused', 'Requests that were refused.');
 * refused.add();
 */
export interface PluginMetrics {
  /**
   * Declares a counter, in `setup`. `name` and `labels` have the letters a-z, 0-9 and _; it is published as `sluice_plugin_PLUGIN_NAME_total`.
   * A counter has at most 100 series: what has no room is counted under the label value `other`. Throws for a name that is taken.
   */
  counter(name: string, help: string, labels?: readonly string[]): PluginCounter;
  /** Returns the counters of all plugins in this process, for a plugin that publishes them. */
  all(): readonly CountedSeries[];
}
