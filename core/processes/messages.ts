/** Messages between the primary process and its workers. */
import type { HealthNews, HealthWord } from '../routing/health/primary.ts';
import type { RatesAnswer, RatesQuestion, RatesRecall } from '../money/rates/index.ts';
import type { KnownSecret } from '../config/secrets/known.ts';
import type { PrimaryPeerMessage, WorkerPeerMessage } from '../state/links/peers-primary.ts';
import type { ProcessesStatus, ReloadOutcome, ReloadRequest } from '../state/links/processes.ts';

/*
 * What the primary process and its workers tell each other. The primary serves nothing and loads next to nothing: it starts workers,
 * hands connections to them, and counts for all of them.
 */

/** What a worker is told when it is awake. */
export interface StartOrder {
  readonly type: 'start';
  /** `--config`, as the operator gave it. */
  readonly config?: string;
  readonly worker: number;
  /** The configuration that is in force; absent at the first start. */
  readonly before?: {
    /** {@link Facts.database} */
    readonly database: string;
    /** Where it listens, as its config says. */
    readonly host: string;
    readonly port: number;
  };
  /** True: another generation serves, and goes on where this one does not fit. */
  readonly isReload: boolean;
  /** {@link Facts.leftOut} of the configuration that is in force. */
  readonly leftOut?: readonly string[];
  /** Secrets that workers before it have read, in case that they cannot be read now. */
  readonly secrets?: readonly KnownSecret[];
  /** The port to ask for where the config says 0. */
  readonly freePort: number;
}

/** What a worker says of itself once it serves. */
export interface Facts {
  readonly url: string;
  /** The port on which it listens, and host and port as the config says. */
  readonly foundPort: number;
  readonly host: string;
  readonly port: number;
  /** How many workers the config wants. */
  readonly workers: number;
  /** True where a spare worker is to be ready besides. */
  readonly spareWorker: boolean;
  /** The version of the configuration. */
  readonly version: string;
  /**
   * A digest of all files that the configuration is made of, as this worker found them; absent when they changed while it read them. Unlike
   * the version it covers `.env`, and is shown to nobody.
   */
  readonly files?: string;
  /** A digest of where the data is: it must stay the same. */
  readonly database: string;
  /** The revision of the run-time configuration. */
  readonly runtimeRevision: number;
  /** Entries of the run-time configuration that do not fit and are left out, as `kind:name`. A reload may leave out the same. */
  readonly leftOut: readonly string[];
  /** The config file, and the folder around it. */
  readonly file: string;
  readonly root: string;
  readonly logLevel: string;
  /** Time between the announcement of a stop and the close of the listener, in milliseconds. */
  readonly drainDelay: number;
  /** For open calls to finish, in milliseconds: when the gateway stops, and when another worker has taken over. */
  readonly drain: number;
  readonly reload: number;
  /** For the operator, at the first start and whenever it holds something that is shown only once. */
  readonly banner?: string;
}

/** From the primary to a worker. */
export type ToWorker =
  | StartOrder
  /** Another one has taken over: finish what is open. */
  | { readonly type: 'retire' }
  /** Close connections over which no call runs, after `retire`. */
  | { readonly type: 'let-go' }
  /** The gateway is about to stop: `/readyz` answers 503, and everything is still served. */
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
  /** It listens to what it is told: what was sent before is lost. */
  | { readonly type: 'awake' }
  | { readonly type: 'ready'; readonly facts: Facts }
  /** It has served for {@link trialTime}. */
  | { readonly type: 'tried' }
  /** It takes no more connections, after `retire`. */
  | { readonly type: 'retired' }
  /** It cannot start, for these reasons. */
  | { readonly type: 'failed'; readonly problems: readonly string[] }
  | { readonly type: 'reload'; readonly id: number; readonly request: ReloadRequest }
  | { readonly type: 'status'; readonly id: number }
  /** Secrets that it has read, for the workers after it. */
  | { readonly type: 'secrets'; readonly known: readonly KnownSecret[] }
  | { readonly type: 'rates'; readonly question: RatesQuestion }
  | { readonly type: 'health'; readonly word: HealthWord }
  | { readonly type: 'peers'; readonly word: WorkerPeerMessage };
