/** Connections of rate limits to the shared store, and the names of their keys in it. */
import { SharedLink, type ReportShared, type Script } from '../../state/links/shared-link.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';

/** Before every name in the store. What stands in braces keeps all on one node of a cluster, where one script may touch them. */
export const prefix = 'sluice:{rates}:';

/** Returns the name of a minute or a set of slots in the store. */
export function keyOf(subject: string): string {
  return prefix + subject;
}

/** Returns the name of the set of processes for which something of the subject was counted ahead. */
export function holdersOf(subject: string): string {
  return `${prefix}${subject}:ahead`;
}

/** Seconds that one request for a message waits in the store. Less than the time in which each command must be answered. */
const messageWait = '0.2';

/** Operations of the shared store that rate limits use. Simulations replace it. */
export interface RatesStore {
  readonly isUp: boolean;
  /** Runs a script as one step. Rejects when the store does not answer soon. */
  run(script: Script, keys: readonly string[], values: readonly string[]): Promise<readonly unknown[]>;
  /** Takes the oldest message out of a list, for which it waits for a moment; undefined when there was none. Rejects as {@link run} does. */
  receive(list: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Listeners that are called when a store becomes reachable, also for the first time, and when it becomes unreachable. */
export interface StoreWatcher {
  up(): void;
  down(): void;
}

/** Connects to the shared store: with one connection for scripts, and one for messages when the first is asked for. */
export function connectRatesStore(
  store: SharedStoreSettings,
  scripts: readonly Script[],
  report: ReportShared,
  watcher: StoreWatcher,
): RatesStore {
  const link = new SharedLink({
    store,
    prefix,
    scripts,
    report(error) {
      if (error !== undefined) watcher.down();
      report(error);
    },
    onUp: () => watcher.up(),
  });
  let messages: SharedLink | undefined;
  return {
    get isUp() {
      return link.isUp;
    },
    run: (script, keys, values) => link.run<readonly unknown[]>(script, keys, values),
    async receive(list) {
      // The other connection tells the operator when the store is gone.
      messages ??= new SharedLink({ store, prefix, scripts: [], report: () => {}, onUp: () => {} });
      const found = await messages.command<readonly [string, string] | null>(['BLPOP', list, messageWait]);
      return found?.[1];
    },
    async close() {
      messages?.close();
      // Commands go out in order: when this one is answered the others have run.
      if (link.isUp) await link.command(['PING']).catch(() => {});
      link.close();
    },
  };
}
