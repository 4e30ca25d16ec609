import { OnlyPeer, type Peers } from './peers.ts';

/** Why a reload is asked for. */
export interface ReloadRequest {
  /** The revision of the run-time configuration that is to run. Nothing is reloaded where it runs already, or has just failed. */
  readonly runtimeRevision?: number;
  /** A later revision that the process which asks runs: the database was restored to an older one. */
  readonly restoredFrom?: number;
}

/** What came of a reload. */
export interface ReloadOutcome {
  readonly ok: boolean;
  /** Why the old configuration stays in force: sentences for the operator. Empty when the reload worked. */
  readonly problems: readonly string[];
}

/** One process that serves calls, or is about to, or no longer takes new ones. */
export interface WorkerStatus {
  /** 1 for the first. The one that takes a place over has the same number. */
  readonly worker: number;
  readonly pid: number;
  /** `leaving`: it finishes what it has, and ends. `spare`: it takes calls only while another one is missing. */
  readonly state: 'starting' | 'serving' | 'spare' | 'leaving';
  /** The version of the configuration that it runs; empty while it starts. */
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** How the processes of this gateway stand. */
export interface ProcessesStatus {
  /** Changes with every change to the config, and to plugins and channels beside it. Empty where nobody knows. */
  readonly version: string;
  /** Since when it is in force, in milliseconds since 1970. */
  readonly since: number;
  /** False where nothing can be reloaded: the gateway is part of another program. */
  readonly reloads: boolean;
  /** Files are watched, and a change is followed by a reload. */
  readonly watching: boolean;
  readonly lastReload?: ReloadOutcome & {
    /** When it ended, in milliseconds since 1970. */
    readonly at: number;
    /** How long it took, in milliseconds. */
    readonly ms: number;
  };
  /** Workers that ended by themselves since the start. */
  readonly crashes: number;
  /** When the last of them ended, in milliseconds since 1970. */
  readonly lastCrashAt?: number;
  readonly workers: readonly WorkerStatus[];
}

/** The processes that serve together, as one of them sees them. */
export interface Processes {
  /** This process among those that serve, 1 for the first. A job that one process alone should do belongs to the first. */
  readonly worker: number;
  /** How many serve. */
  readonly workers: number;
  /** Puts the configuration and the code as they are now in force, or says why not. Open calls are not touched. Never rejects. */
  reload(request?: ReloadRequest): Promise<ReloadOutcome>;
  /** Never rejects. */
  status(): Promise<ProcessesStatus>;
  /** Asks all processes. */
  readonly peers: Peers;
}

const startedAt = Date.now();

/** A gateway that is one process, or a part of one. */
export function alone(): Processes {
  return {
    worker: 1,
    workers: 1,
    reload: async () => ({
      ok: false,
      problems: ['This gateway is part of another program: only one that "sluice start" runs can reload.'],
    }),
    status: async () => ({
      version: '',
      since: startedAt,
      reloads: false,
      watching: false,
      crashes: 0,
      workers: [{ worker: 1, pid: process.pid, state: 'serving', version: '', since: startedAt }],
    }),
    peers: new OnlyPeer(),
  };
}
