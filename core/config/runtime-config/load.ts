/** Reads the run-time part when a process starts, and builds the gateway of it. */
import type { Gateway } from '../../front/gateway.ts';
import type { RuntimeConfigStore, RuntimeSnapshot } from '../../state/runtime-config/index.ts';
import { ConfigError, type LoadedConfig } from '../config.ts';
import { RuntimeDefinitions } from './definitions.ts';
import type { RunningRuntime } from './contract.ts';
import { mergeRuntime, placeOf } from './merge.ts';

/** Kinds of entries that may be left out where they do not fit: without them less is served, and nothing is allowed that was not. */
const dispensable: ReadonlySet<string> = new Set(['channel', 'alias']);

/** A gateway and the run-time part that it runs. */
export interface BuiltGateway {
  readonly gateway: Gateway;
  readonly running: RunningRuntime;
}

/**
 * Builds a gateway of the file's config and the run-time part. With `isStart`, channels and aliases that do not fit are left out. Throws
 * ConfigError for all else that does not fit.
 */
export async function buildWithRuntime(
  file: LoadedConfig,
  store: RuntimeConfigStore,
  build: (config: LoadedConfig) => Promise<Gateway>,
  isStart: boolean,
): Promise<BuiltGateway> {
  if (!file.settings.runtimeConfig.enabled)
    return { gateway: await build(file), running: { revision: 0, problems: [] } };
  const definitions = new RuntimeDefinitions(file);
  let snapshot = await store.read();
  const { revision } = snapshot;
  const left: string[] = [];
  for (;;) {
    // oxlint-disable no-await-in-loop -- again only without entries that do not fit
    const merged = await mergeRuntime(file, snapshot, definitions);
    let problems = merged.problems;
    if (problems.length === 0) {
      try {
        return { gateway: await build(merged.config), running: { revision, problems: left } };
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        ({ problems } = error);
      }
    }
    // oxlint-enable no-await-in-loop
    const next = isStart ? without(snapshot, problems) : snapshot;
    if (next.entries.length === snapshot.entries.length) throw new ConfigError(problems);
    left.push(...problems);
    snapshot = next;
  }
}

/** Returns the run-time part without the dispensable entries that problems are about. */
function without(snapshot: RuntimeSnapshot, problems: readonly string[]): RuntimeSnapshot {
  const entries = snapshot.entries.filter(
    (entry) =>
      !dispensable.has(entry.kind) || !problems.some((problem) => problem.startsWith(`${placeOf(entry)}:`)),
  );
  return { ...snapshot, entries };
}
