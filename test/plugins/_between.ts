import type { Observable } from 'rxjs';
import { type GatewayEvent, type PluginEntry } from 'sluice';
import { definePlugin, type Call } from 'sluice/internal';

/** A call before and after a plugin, and its reply before and after it. */
export interface Passed {
  readonly call: Call;
  /** Absent where the plugin did not let the call go on. */
  on?: Call;
  got?: Observable<GatewayEvent>;
  /** Absent where the plugin refused. */
  gave?: Observable<GatewayEvent>;
}

/**
 * A plugin between two that watch it. An outcome of the kit tells what a call and its reply say; this tells that they went through as the
 * very objects that they were, for plugins that must cost nothing, and what a call was that no channel serves.
 */
export function between(entry: PluginEntry): {
  readonly plugins: readonly PluginEntry[];
  readonly passed: readonly Passed[];
} {
  const { stage } = entry.spec;
  const passed: Passed[] = [];
  const before = definePlugin({
    name: 'before-it',
    stage,
    setup: () => async (call: Call, next) => {
      const one: Passed = { call };
      passed.push(one);
      return (one.gave = await next(call));
    },
  });
  const behind = definePlugin({
    name: 'behind-it',
    stage,
    setup: () => async (call: Call, next) => {
      const one = passed.at(-1);
      if (one !== undefined) one.on = call;
      const reply = await next(call);
      if (one !== undefined) one.got = reply;
      return reply;
    },
  });
  return { plugins: [before(), entry, behind()], passed };
}
