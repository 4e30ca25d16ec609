/** Store of asynchronous tasks (such as video generation) in the database: ownership, leases for polling, and settlement at their end. */
import { parseObject } from '../json/parse.ts';
import { isObject } from '../model/json.ts';
import { isFinished, type Task } from '../model/tasks.ts';
import type { Ledger, Settlement } from './ledger/index.ts';
import { rows, type Row, type Sql, type SqlValue, type Work } from '../state/database/sql.ts';
import { LeasedRows, type Lease, type LeasedTable } from './leased-rows.ts';
import type { ReportError, Stores } from '../state/stores.ts';
import { startSweeping } from '../state/database/sweeping.ts';

/** Selects tasks of an owner. */
export interface TaskQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** The id of the task that the page follows. */
  readonly after?: string;
  /** Number of tasks that are skipped first. */
  readonly skip?: number;
  /** Only those made in this format. */
  readonly format?: string;
}

/** A page of tasks. */
export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly hasMore: boolean;
}

/**
 * The tasks in the database, for all gateways that share it. A write is durable when its promise resolves. Tasks are visible to their owner
 * only. Rejects when the database fails.
 */
export interface TaskStore {
  /** Writes a new task and its charge in one transaction. */
  create(task: Task, pollAt: number, settlement: Settlement | undefined): Promise<void>;
  find(owner: string, id: string): Promise<Task | undefined>;
  /** Returns tasks in the order of their creation. Undefined when `after` is no task of the owner. */
  list(owner: string, query: TaskQuery): Promise<TaskPage | undefined>;
  /** Leases unfinished tasks that are due for a request to their provider; the longest due come first. */
  claim(lease: Lease, limit: number): Promise<readonly Task[]>;
  /** Leases one task, due or not; undefined when it is finished, or leased by another process. */
  claimOne(lease: Lease, owner: string, id: string): Promise<Task | undefined>;
  /** Updates an unfinished task and ends its lease. Returns false when it was finished meanwhile, or leased by another process. */
  update(lease: Lease, task: Task, pollAt: number): Promise<boolean>;
  /** Writes the end of a task and its settlements, once. Returns false, and settles nothing, when the task was finished already. */
  finish(task: Task, settlements: readonly Settlement[]): Promise<boolean>;
  /** False when there was none. */
  remove(owner: string, id: string): Promise<boolean>;
}

const sweep = { batch: 200, pause: 60_000, pauseWhenFull: 200 };
const table: LeasedTable = {
  name: 'tasks',
  key: ['owner', 'id'],
  columns:
    'owner, id, created, updated, finished, expires, deadline, state, format, channel, asked, asks, details',
  open: 'finished IS NULL',
};

/** Opens the store. Removes expired tasks periodically until the callback that `onClose` receives is called. */
export function openTaskStore(
  { stores, ledger }: { readonly stores: Pick<Stores, 'database'>; readonly ledger: Ledger },
  report: ReportError,
  onClose: (job: () => void) => void,
): TaskStore {
  const kept = new LeasedRows(stores.database, table, (found) => taskOf(found, report));
  onClose(
    startSweeping(
      () => removeExpired(kept.sql),
      sweep,
      (cause) => report(new Error('Tasks that have expired could not be removed.', { cause })),
    ),
  );
  return {
    async create(task, pollAt, settlement) {
      await ledger.settleAfter(settlement === undefined ? [] : [settlement], () => insert(task, pollAt));
    },
    find: (owner, id) => kept.find(owner, id),
    async list(owner, { format, ...query }) {
      const page = await kept.page({ owner }, query, format === undefined ? {} : { format });
      return page && { tasks: page.items, hasMore: page.hasMore };
    },
    claim: (lease, limit) => kept.claim(lease, limit),
    claimOne: (lease, owner, id) => kept.claimOne(lease, owner, id),
    update: ({ name }, task, pollAt) =>
      kept.sql.run(() =>
        kept.release(
          [task.owner, task.id],
          { ...valuesOf(task), ask_at: Math.min(pollAt, task.deadline) },
          name,
        ),
      ),
    async finish(task, settlements) {
      if (!isFinished(task)) throw new Error('A task that goes on was to be finished.');
      return ledger.settleAfter(settlements, () => kept.release([task.owner, task.id], valuesOf(task)));
    },
    remove: (owner, id) => kept.remove(owner, id),
  };
}

/** Returns true when there may be more. */
async function removeExpired({ run }: Sql): Promise<boolean> {
  const gone = await run(() =>
    rows(
      `DELETE FROM tasks WHERE (owner, id) IN
        (SELECT owner, id FROM tasks WHERE expires <= ? AND finished IS NOT NULL LIMIT ?) RETURNING id`,
      Date.now(),
      sweep.batch,
    ),
  );
  return gone.length === sweep.batch;
}

function* insert(task: Task, pollAt: number): Work<boolean> {
  const values = { ...valuesOf(task), ask_at: pollAt, lease: '', lease_until: 0 };
  const places = Object.keys(values).map(() => '?');
  yield* rows(
    `INSERT INTO tasks (${Object.keys(values).join(', ')}) VALUES (${places.join(', ')})`,
    ...Object.values(values),
  );
  return true;
}

/** Returns the columns of a task. Members without a column of their own are in `details`. */
function valuesOf(task: Task): Readonly<Record<string, SqlValue>> {
  const {
    owner,
    id,
    createdAt,
    updatedAt,
    finishedAt,
    expiresAt,
    deadline,
    state,
    format,
    channel,
    ...rest
  } = task;
  const { polledAt, asks, ...details } = rest;
  return {
    owner,
    id,
    created: createdAt,
    updated: updatedAt,
    finished: finishedAt ?? null,
    expires: expiresAt,
    deadline,
    state,
    format,
    channel,
    asked: polledAt,
    asks,
    details: JSON.stringify(details),
  };
}

function taskOf(found: Row, report: ReportError): Task | undefined {
  const details = parseObject(String(found['details']));
  if (details === undefined || !isObject(details['charged'])) {
    report(new Error(`The task ${String(found['id'])} is damaged in the database and counts as missing.`));
    return undefined;
  }
  const number = (name: string): number => Number(found[name]);
  return {
    ...(details as unknown as Task),
    owner: String(found['owner']),
    id: String(found['id']),
    createdAt: number('created'),
    updatedAt: number('updated'),
    ...(found['finished'] === null ? {} : { finishedAt: number('finished') }),
    expiresAt: number('expires'),
    deadline: number('deadline'),
    state: String(found['state']) as Task['state'],
    format: String(found['format']),
    channel: String(found['channel']),
    polledAt: number('asked'),
    asks: number('asks'),
  };
}
