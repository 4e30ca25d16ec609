import type { Call } from '../sdk/call.ts';
import type { WatchPlugins } from '../sdk/author/plugin-time.ts';
import type { Running } from './pipeline.ts';

/** Returns the plugins with their request phases timed, for whoever watches; the same plugins where nobody does. */
export function timed(plugins: readonly Running[], watchers: readonly WatchPlugins[]): readonly Running[] {
  return watchers.length === 0 ? plugins : plugins.map((plugin) => timedPlugin(plugin, watchers));
}

function timedPlugin(plugin: Running, watchers: readonly WatchPlugins[]): Running {
  return {
    ...plugin,
    handler(call, next) {
      const startedAt = performance.now();
      let isReported = false;
      const reportOnce = (): void => {
        if (isReported) return;
        isReported = true;
        const time = { plugin: plugin.name, startedAt, endedAt: performance.now() };
        for (const watch of watchers) report(watch, call, time);
      };
      try {
        const given = plugin.handler(call, (inner) => {
          reportOnce();
          return next(inner);
        });
        // One that answers by itself, or refuses. The promise goes on as it is, because the pipeline knows promises by their identity.
        if (given instanceof Promise) given.then(reportOnce, reportOnce);
        else reportOnce();
        return given;
      } catch (error) {
        reportOnce();
        throw error;
      }
    },
  };
}

/** Errors of a watcher are no business of the call. */
function report(watch: WatchPlugins, call: Call, time: Parameters<WatchPlugins>[1]): void {
  try {
    watch(call, time);
  } catch (error) {
    process.emitWarning(
      error instanceof Error ? error : new Error('An observer of plugin times failed.', { cause: error }),
    );
  }
}
