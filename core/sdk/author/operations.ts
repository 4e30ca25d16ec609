/** State of a gateway, for plugins that monitor it in the background. */
import type { ApiKey } from '../api-key.ts';
import type { HeldBudget } from '../budget.ts';

/**
 * Current state of a budget.
 *
 * @example
 * const isHalfSpent = (budget: BudgetStanding): boolean => budget.spent * 2 >= budget.amount;
 */
export interface BudgetStanding extends HeldBudget {
  /** Start of the period, in milliseconds since 1970; 0 for a total. */
  readonly since: number;
  /** Amount spent in the period, in the unit of the budget. */
  readonly spent: number;
  /** Amount reserved for running calls. */
  readonly reserved: number;
}

/**
 * State of a key of a channel, or of one model of a key, that has failed.
 *
 * @example
 * const isDown = ({ state }: TargetStanding): boolean => state === 'resting' || state === 'probing';
 */
export interface TargetStanding {
  /** The channel's id. */
  readonly channel: string;
  /** Id of the channel's key; empty if the channel has none. */
  readonly key: string;
  /** The provider's name of the model; absent for the key as a whole. */
  readonly model?: string;
  /**
   * `cooling`: in the cooldown that the provider requested. `resting`: the circuit breaker is open after failures. `probing`: half-open, with one
   * probe call. `up`: available after earlier failures.
   */
  readonly state: 'up' | 'cooling' | 'resting' | 'probing';
  /** The error code of the last failure. */
  readonly code?: string;
}

/**
 * State of a gateway at a moment.
 *
 * @example
 * const { database, targets } = await tools.operations.status();
 */
export interface OperationsStatus {
  /** `up` when the database accepts writes. */
  readonly database: 'up' | 'down';
  /** State of the store that gateways share; `up` where there is none. */
  readonly sharedStore: 'up' | 'down';
  /** Targets that have failed. */
  readonly targets: readonly TargetStanding[];
  /** Data with a retention rule, with a warning for the operator when their removal is late. */
  readonly upkeep: readonly { readonly what: string; readonly warning?: string }[];
  /** The last reload; absent if there was none. */
  readonly lastReload?: { readonly ok: boolean; readonly problems: readonly string[]; readonly at: number };
  /** Time of the last crash of a worker, in milliseconds since 1970; absent if there was none. */
  readonly lastCrashAt?: number;
  /** True in exactly one worker of a gateway: the one with the lowest number among those that serve. */
  readonly isFirst: boolean;
}

/**
 * Figures of one process at a moment.
 *
 * @example
 * const waiting = tools.operations.figures().connections.reduce((sum, pool) => sum + pool.waiting, 0);
 */
export interface ProcessFigures {
  /** Calls that wait to be charged and recorded. */
  readonly unsettledCalls: number;
  /** API keys that the process holds in memory. */
  readonly heldApiKeys: number;
  /** Lines of the log that could not be written since the start. */
  readonly lostLogLines: number;
  /** State of the store that gateways share; `up` where there is none. */
  readonly sharedStore: 'up' | 'down';
  /** Connections of this process to PostgreSQL: to the primary, to a replica, and those of the thread that reads sums; empty with SQLite. */
  readonly connections: readonly {
    readonly server: 'primary' | 'replica' | 'thread';
    /** Connections that run a statement. */
    readonly inUse: number;
    readonly idle: number;
    /** Maximum number of connections. */
    readonly size: number;
    /** Statements that wait for a connection. */
    readonly waiting: number;
  }[];
  /** Targets that have failed. */
  readonly targets: readonly TargetStanding[];
  /** Data with a retention rule. */
  readonly upkeep: readonly {
    readonly what: string;
    /** Number of rows, if it is known. */
    readonly rows?: number;
    /** Seconds for which the oldest row that should have been removed is overdue. */
    readonly overdueSeconds: number;
  }[];
}

/**
 * State of the gateway, for checks in the background every few seconds. Do not use it for each call.
 *
 * @example
 * const timer = setInterval(async () => {
 *   const { database } = await tools.operations.status();
 *   if (database === 'down') tools.log.warn({}, 'the database is down');
 * }, 10_000);
 * tools.onClose(() => clearInterval(timer));
 */
export interface Operations {
  /** Identifies this gateway among those on one database: its host, and the id of its primary process. The same in all workers. */
  readonly gateway: string;
  /** Returns the state. Checks the database with a write, and the primary process. Never rejects. */
  status(): Promise<OperationsStatus>;
  /** Returns figures of this process from its memory, for metrics. */
  figures(): ProcessFigures;
  /** Reads the state of the budgets of a key and of its owners from the database. */
  budgets(key: ApiKey): Promise<readonly BudgetStanding[]>;
  /** Returns a page of all API keys, newest first, each with its team as `owners`. `after` is `next` of the previous page; the last page has none. */
  keys(limit: number, after?: string): Promise<{ readonly keys: readonly ApiKey[]; readonly next?: string }>;
}

/**
 * Current load of this process.
 *
 * @example
 * if (tools.overload.waiting > 0) return next(call);
 */
export interface ProcessLoad {
  /** Number of running calls. */
  readonly running: number;
  /** Number of calls that wait until a running one ends. */
  readonly waiting: number;
  /** Calls that were refused since the start because there was too much to do. */
  readonly refused: number;
  /** Bytes of bodies and forms that calls hold in memory. */
  readonly bodies: number;
  /** Milliseconds by which calls came late when it was last looked at: the event loop, or new connections that had to wait for it. */
  readonly lag: number;
  /** Share of the memory that is full, 0 to 1. */
  readonly memory: number;
  /** Why every new call is refused now; undefined when they are taken. */
  readonly strain: 'lag' | 'memory' | undefined;
}
