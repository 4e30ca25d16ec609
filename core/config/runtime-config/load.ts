/** Reads the run-time part when a process starts, and builds the gateway of it. */
import type { Gateway } from '../../front/gateway.ts';
import type { RuntimeConfigStore, RuntimeEntry, RuntimeSnapshot } from '../../state/runtime-config/index.ts';
import { ConfigError, type LoadedConfig } from '../config.ts';
import { RuntimeDefinitions } from './definitions.ts';
import type { RunningRuntime } from './contract.ts';
import { mergeRuntime, describeEntry } from './merge.ts';

/** Kinds of entries that may be left out where they do not fit: without them less is served, and nothing is allowed that was not. */
const dispensable: ReadonlySet<string> = new Set(['channel', 'alias']);

/** A gateway and the run-time part that it runs. */
export interface BuiltGateway {
  readonly gateway: Gateway;
  readonly running: RunningRuntime;
  /** Entries that were left out, as `kind:name`. */
  readonly leftOut: readonly string[];
}

/**
 * Builds a gateway of the file's config and the run-time part. Channels and aliases that do not fit are left out, as far as `mayLeaveOut` allows:
 * all of them at a start, and at a reload those (as `kind:name`) that the gateway serves without already. Throws ConfigError for all else that
 * does not fit.
 */
export async function buildWithRuntime(
  file: LoadedConfig,
  store: RuntimeConfigStore,
  build: (config: LoadedConfig) => Promise<Gateway>,
  mayLeaveOut: 'all' | ReadonlySet<string>,
): Promise<BuiltGateway> {
  if (!file.settings.runtimeConfig.enabled)
    return { gateway: await build(file), running: { revision: 0, problems: [] }, leftOut: [] };
  const definitions = new RuntimeDefinitions(file);
  let snapshot = await store.read();
  const { revision } = snapshot;
  const left: string[] = [];
  const leftOut: string[] = [];
  for (;;) {
    // oxlint-disable no-await-in-loop -- again only without entries that do not fit
    const merged = await mergeRuntime(file, snapshot, definitions);
    let problems = merged.problems;
    if (problems.length === 0) {
      try {
        return { gateway: await build(merged.config), running: { revision, problems: left }, leftOut };
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        ({ problems } = error);
      }
    }
    // oxlint-enable no-await-in-loop
    const unfit = unfitOf(snapshot, problems).filter(
      (entry) => mayLeaveOut === 'all' || mayLeaveOut.has(idOf(entry)),
    );
    if (unfit.length === 0) throw new ConfigError(problems);
    left.push(...problems);
    leftOut.push(...unfit.map(idOf));
    snapshot = without(snapshot, unfit);
  }
}

/** Returns the dispensable entries that problems are about. */
function unfitOf({ entries }: RuntimeSnapshot, problems: readonly string[]): readonly RuntimeEntry[] {
  return entries.filter(
    (entry) =>
      dispensable.has(entry.kind) &&
      problems.some((problem) => problem.startsWith(`${describeEntry(entry)}:`)),
  );
}

function without(snapshot: RuntimeSnapshot, unfit: readonly RuntimeEntry[]): RuntimeSnapshot {
  const gone = new Set(unfit);
  return { ...snapshot, entries: snapshot.entries.filter((entry) => !gone.has(entry)) };
}

function idOf({ kind, name }: RuntimeEntry): string {
  return `${kind}:${name}`;
}
