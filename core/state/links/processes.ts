/** Types of the processes of one gateway (workers, status, reload), and the implementation for a gateway that is a single process. */
import { OnlyPeer, type Peers } from './peers.ts';

/** Conditions of a reload. */
export interface ReloadRequest {
  /** Wanted revision of the run-time configuration. Nothing is reloaded where it runs already, or has just failed. */
  readonly runtimeRevision?: number;
  /** Later revision of the requesting process, where the database was restored to an older one. */
  readonly restoredFrom?: number;
}

/** Result of a reload. */
export interface ReloadOutcome {
  readonly ok: boolean;
  /** Why the old configuration stays in force: sentences for the operator. Empty when the reload worked. */
  readonly problems: readonly string[];
}

/** One process that serves calls, or is about to, or no longer takes new ones. */
export interface WorkerStatus {
  /** 1 for the first. A replacement has the number of the worker that it replaces. */
  readonly worker: number;
  readonly pid: number;
  /** `leaving`: finishes its calls, then ends. `spare`: accepts calls only while another worker is missing. */
  readonly state: 'starting' | 'serving' | 'spare' | 'leaving';
  /** The version of the configuration that it runs; empty while it starts. */
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** State of the processes of this gateway. */
export interface ProcessesStatus {
  /** Changes with every change to the config, and to plugins and channels beside it. Empty where it is not known. */
  readonly version: string;
  /** Time since which it is in force, in milliseconds since 1970. */
  readonly since: number;
  /** False where nothing can be reloaded: the gateway is part of another program. */
  readonly reloads: boolean;
  /** True when files are watched and a change causes a reload. */
  readonly watching: boolean;
  readonly lastReload?: ReloadOutcome & {
    /** When it ended, in milliseconds since 1970. */
    readonly at: number;
    /** Duration in milliseconds. */
    readonly ms: number;
  };
  /** Number of workers that crashed since the start. */
  readonly crashes: number;
  /** When the last of them ended, in milliseconds since 1970. */
  readonly lastCrashAt?: number;
  readonly workers: readonly WorkerStatus[];
}

/** The processes of this gateway, as seen by one of them. */
export interface Processes {
  /** Number of this worker, 1 for the first. Jobs for a single process run in the first. */
  readonly worker: number;
  /** Number of workers. */
  readonly workers: number;
  /** Loads the current configuration and code, or returns the problems. Open calls are not affected. Never rejects. */
  reload(request?: ReloadRequest): Promise<ReloadOutcome>;
  /** Never rejects. */
  status(): Promise<ProcessesStatus>;
  /** Messages to all processes. */
  readonly peers: Peers;
}

const startedAt = Date.now();

/** Returns the processes of a gateway that is a single process, or part of another program. */
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
