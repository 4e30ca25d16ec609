/** Parts of a response that the running plugins read. */
import type { PluginEntry, Reads } from './author/plugin.ts';

const order: readonly Reads[] = ['nothing', 'usage', 'content'];

/** Returns the most that any of the plugins reads of replies. Options that do not fit count as reading nothing: they are refused elsewhere. */
export function mostRead(entries: readonly PluginEntry[]): Reads {
  return entries.map(readsOf).reduce((most, one) => {
    return order.indexOf(one) > order.indexOf(most) ? one : most;
  }, 'nothing');
}

function readsOf({ spec: { reads = 'nothing', options: schema }, options }: PluginEntry): Reads {
  if (typeof reads !== 'function') return reads;
  const parsed = schema?.safeParse(options);
  return parsed?.success === false ? 'nothing' : reads(parsed?.data);
}
