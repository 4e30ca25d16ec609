/** Public types for measuring the time that plugins take. */
import type { Call } from './call.ts';

/**
 * Time that a plugin took before it passed a call on, answered it or refused it. Both are values of `performance.now()`.
 *
 * @example
 * const milliseconds = time.endedAt - time.startedAt;
 */
export interface PluginTime {
  readonly plugin: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * Callback of `tools.watchPlugins`. Plugins of the translate stage are reported for each attempt.
 *
 * @example
 * const watch: WatchPlugins = (call, { plugin, startedAt, endedAt }) => log.debug({ id: call.id, plugin, ms: endedAt - startedAt }, 'plugin ran');
 */
export type WatchPlugins = (call: Call, time: PluginTime) => void;
