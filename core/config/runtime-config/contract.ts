/** Types of requests for changes of the run-time configuration, and of their results. */
import type { Log } from '../../log.ts';
import type { Processes, ReloadOutcome } from '../../state/links/processes.ts';
import type { EntryChange, RuntimeConfigStore, RuntimeEntry } from '../../state/runtime-config/index.ts';
import type { Upkeep } from '../../state/upkeep.ts';
import type { LoadedConfig } from '../config.ts';
import type { EntryState } from './merge.ts';

/** Parts that the run-time configuration is built on. */
export interface RuntimeConfigParts {
  readonly store: RuntimeConfigStore;
  /** Export of the config file, without the run-time part. */
  readonly file: LoadedConfig;
  readonly processes: Processes;
  readonly upkeep: Upkeep;
  readonly log: Log;
  /** Builds a gateway of a config and closes it. Returns what is wrong with the config. */
  readonly tryConfig: (config: LoadedConfig) => Promise<readonly string[]>;
}

/** The run-time part that a process runs. */
export interface RunningRuntime {
  readonly revision: number;
  /** Sentences about entries that were left out at the start. */
  readonly problems: readonly string[];
}

/** An entry and how it stands. */
export interface StandingEntry extends EntryState {
  readonly entry: RuntimeEntry;
}

/** Author of a change, and whether it is answered only when it is applied. */
export interface ChangeRequest {
  readonly actor: string;
  readonly wait: boolean;
}

/** Result of a change. */
export interface ChangeResult {
  readonly revision: number;
  readonly changes: readonly EntryChange[];
  /** Result of applying it on this gateway; absent where that still runs, or is not waited for. */
  readonly applied?: ReloadOutcome;
}
