/** How a gateway stands, for plugins that watch it in the background. */
import type { ApiKey } from '../api-key.ts';
import type { HeldBudget } from '../budget.ts';

/**
 * A budget as it stands now.
 *
 * @example
 * const isHalfSpent = (budget: BudgetStanding): boolean => budget.spent * 2 >= budget.amount;
 */
export interface BudgetStanding extends HeldBudget {
  /** When the period began, in milliseconds since 1970; 0 for a total. */
  readonly since: number;
  /** Amount spent in it, in the unit of the budget. */
  readonly spent: number;
  /** Amount reserved for calls that run. */
  readonly reserved: number;
}

/**
 * A key of a channel, or one model behind it, that is not simply up.
 *
 * @example
 * const isDown = ({ state }: TargetStanding): boolean => state === 'resting' || state === 'probing';
 */
export interface TargetStanding {
  /** The channel's id. */
  readonly channel: string;
  /** The id of the channel's key; empty where there is none. */
  readonly key: string;
  /** The provider's name of the model; absent for what holds for the key as a whole. */
  readonly model?: string;
  /**
   * `cooling`: the provider asked for patience. `resting`: the circuit is open after failures. `probing`: one call finds out whether it answers
   * again. `up`: it serves, and has failed before.
   */
  readonly state: 'up' | 'cooling' | 'resting' | 'probing';
  /** The error code of the last failure. */
  readonly code?: string;
}

/**
 * How a gateway stands at a moment.
 *
 * @example
 * const { database, targets } = await tools.operations.status();
 */
export interface OperationsStatus {
  /** `up` when the database takes writes. */
  readonly database: 'up' | 'down';
  /** State of the store that gateways share; `up` where there is none. */
  readonly sharedStore: 'up' | 'down';
  /** Targets that have failed. */
  readonly targets: readonly TargetStanding[];
  /** What is kept in the database by a rule, with what the operator should know where something is behind. */
  readonly upkeep: readonly { readonly what: string; readonly warning?: string }[];
  /** The last reload; absent where there was none. */
  readonly lastReload?: { readonly ok: boolean; readonly problems: readonly string[]; readonly at: number };
  /** When a worker ended by itself last, in milliseconds since 1970; absent where none has. */
  readonly lastCrashAt?: number;
  /** True in one of the workers of a gateway: that with the lowest number among those that serve. */
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
  /** What is kept in the database by a rule. */
  readonly upkeep: readonly {
    readonly what: string;
    /** Number of rows, where it is known. */
    readonly rows?: number;
    /** Seconds for which the oldest row that should have been removed is overdue. */
    readonly overdueSeconds: number;
  }[];
}

/**
 * How the gateway stands, for looks in the background every few seconds: never for each call.
 *
 * @example
 * const timer = setInterval(async () => {
 *   const { database } = await tools.operations.status();
 *   if (database === 'down') tools.log.warn({}, 'the database is down');
 * }, 10_000);
 * tools.onClose(() => clearInterval(timer));
 */
export interface Operations {
  /** Names this gateway among those on one database, the same in all of its workers: its host, and the id of its main process. */
  readonly gateway: string;
  /** Asks the database with a write, and the main process. Never rejects. */
  status(): Promise<OperationsStatus>;
  /** Returns figures of this process, from its memory: for a scrape. */
  figures(): ProcessFigures;
  /** How the budgets of a key, and of its owners, stand: a read of the database. */
  budgets(key: ApiKey): Promise<readonly BudgetStanding[]>;
  /** A page of all API keys, newest first, each with its team as `owners`. `after` is the `next` of the page before; the last page has none. */
  keys(limit: number, after?: string): Promise<{ readonly keys: readonly ApiKey[]; readonly next?: string }>;
}

/**
 * How much this process has to do now.
 *
 * @example
 * if (tools.overload.waiting > 0) return next(call);
 */
export interface ProcessLoad {
  /** Calls that run. */
  readonly running: number;
  /** Calls that wait for one of these to end. */
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
