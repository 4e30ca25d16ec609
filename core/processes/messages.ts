/** Messages between the primary process and its workers. */
import type { HealthNews, HealthWord } from '../routing/health/primary.ts';
import type { RatesAnswer, RatesQuestion, RatesRecall } from '../money/rates/index.ts';
import type { KnownSecret } from '../config/secrets/known.ts';
import type { PrimaryPeerMessage, WorkerPeerMessage } from '../state/links/peers-primary.ts';
import type { ProcessesStatus, ReloadOutcome, ReloadRequest } from '../state/links/processes.ts';

/*
 * Messages between the primary process and its workers. The primary serves no calls and loads few modules: it starts workers, passes
 * connections to them, and counts limits for all of them.
 */

/** Order to a worker that has loaded. */
export interface StartOrder {
  readonly type: 'start';
  /** Value of `--config`. */
  readonly config?: string;
  readonly worker: number;
  /** Current configuration; absent at the first start. */
  readonly before?: {
    /** {@link Facts.database} */
    readonly database: string;
    /** Address in its config. */
    readonly host: string;
    readonly port: number;
  };
  /** True when another generation of workers serves, and continues if this one fails. */
  readonly isReload: boolean;
  /** {@link Facts.leftOut} of the current configuration. */
  readonly leftOut?: readonly string[];
  /** Secrets that earlier workers have read, for secrets that cannot be read at the moment. */
  readonly secrets?: readonly KnownSecret[];
  /** Port to use if the config has 0. */
  readonly freePort: number;
}

/** Facts about a worker that serves. */
export interface Facts {
  readonly url: string;
  /** Port on which it listens; `host` and `port` are those of the config. */
  readonly foundPort: number;
  readonly host: string;
  readonly port: number;
  /** Number of workers in the config. */
  readonly workers: number;
  /** True when the gateway has a spare worker too. */
  readonly spareWorker: boolean;
  /** The version of the configuration. */
  readonly version: string;
  /**
   * Digest of all files of the configuration, as this worker has read them; absent when they changed meanwhile. Unlike the version it includes
   * `.env`, and is never shown.
   */
  readonly files?: string;
  /** Digest of the location of the data, which must stay the same. */
  readonly database: string;
  /** The revision of the run-time configuration. */
  readonly runtimeRevision: number;
  /** Invalid entries of the run-time configuration that are omitted, as `kind:name`. A reload may omit the same entries. */
  readonly leftOut: readonly string[];
  /** The config file, and the folder around it. */
  readonly file: string;
  readonly root: string;
  readonly logLevel: string;
  /** Time between the announcement of a stop and the close of the listener, in milliseconds. */
  readonly drainDelay: number;
  /** Milliseconds for running calls to finish when the gateway stops (`drain`), and when another worker has replaced this one (`reload`). */
  readonly drain: number;
  readonly reload: number;
  /** Text for the operator, at the first start, and when it contains a value that is shown only once. */
  readonly banner?: string;
}

/** From the primary to a worker. */
export type ToWorker =
  | StartOrder
  /** Another worker has replaced this one, which finishes its calls. */
  | { readonly type: 'retire' }
  /** Closes idle connections, after `retire`. */
  | { readonly type: 'let-go' }
  /** The gateway will stop: `/readyz` returns 503, and calls are still served. */
  | { readonly type: 'announce' }
  /** The gateway stops. */
  | { readonly type: 'stop' }
  | { readonly type: 'reloaded'; readonly id: number; readonly outcome: ReloadOutcome }
  | { readonly type: 'told'; readonly id: number; readonly status: ProcessesStatus }
  | { readonly type: 'rates'; readonly answer: RatesAnswer | RatesRecall }
  | { readonly type: 'health'; readonly news: HealthNews }
  | { readonly type: 'peers'; readonly news: PrimaryPeerMessage };

/**
 * Time in milliseconds that all workers of a new generation must serve before those of the old one leave. It catches a config or a plugin
 * that throws just after its start, for example in a timer. The worker measures it, because a busy machine may not let it run at once.
 */
export const trialTime = 500;

/** From a worker to the primary. */
export type ToPrimary =
  /** The worker handles messages from now on. Earlier ones are lost. */
  | { readonly type: 'awake' }
  | { readonly type: 'ready'; readonly facts: Facts }
  /** The worker has served for {@link trialTime}. */
  | { readonly type: 'tried' }
  /** The worker accepts no more connections, after `retire`. */
  | { readonly type: 'retired' }
  /** The worker cannot start because of these problems. */
  | { readonly type: 'failed'; readonly problems: readonly string[] }
  | { readonly type: 'reload'; readonly id: number; readonly request: ReloadRequest }
  | { readonly type: 'status'; readonly id: number }
  /** Secrets that the worker has read, for later workers. */
  | { readonly type: 'secrets'; readonly known: readonly KnownSecret[] }
  | { readonly type: 'rates'; readonly question: RatesQuestion }
  | { readonly type: 'health'; readonly word: HealthWord }
  | { readonly type: 'peers'; readonly word: WorkerPeerMessage };
