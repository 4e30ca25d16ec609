import { parseObject } from '../json/parse.ts';
import { isObject } from '../model/json.ts';
import { isFinished, type Task } from '../model/tasks.ts';
import type { Ledger, Settlement } from './ledger/index.ts';
import { row, rows, sqlOf, type Row, type SqlValue, type Work } from '../state/database/sql.ts';
import type { ReportError, Stores } from '../state/stores.ts';
import { startSweeping } from '../state/database/sweeping.ts';

/** Which tasks of an owner are wanted. */
export interface TaskQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  /** The id of the task that the page follows. */
  readonly after?: string;
  /** How many are passed over first. */
  readonly skip?: number;
  /** Only those made in this format. */
  readonly format?: string;
}

/** A page of tasks. */
export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly hasMore: boolean;
}

/** Who asks a provider about tasks: the name is nobody else's, and the claim is over after so many milliseconds. */
export interface TaskLease {
  readonly name: string;
  readonly milliseconds: number;
}

/**
 * Tasks in the database, for all gateways that share it. A write is durable when its promise resolves. Whoever asks with another owner
 * finds nothing. Rejects when the database fails.
 */
export interface TaskStore {
  /** Keeps a new task together with what it is charged: both or neither. */
  create(task: Task, askAt: number, settlement: Settlement | undefined): Promise<void>;
  find(owner: string, id: string): Promise<Task | undefined>;
  /** By the time at which they were made. Undefined when `after` names none of the owner's. */
  list(owner: string, query: TaskQuery): Promise<TaskPage | undefined>;
  /** Takes unfinished tasks that are due and that nobody else asks about now; the longest due come first. */
  claim(lease: TaskLease, limit: number): Promise<readonly Task[]>;
  /** Takes one task, due or not; undefined when it is finished, or somebody else asks about it now. */
  claimOne(lease: TaskLease, owner: string, id: string): Promise<Task | undefined>;
  /** Writes what is new of an unfinished task and lets go of it: false when it was finished meanwhile, or another has claimed it. */
  update(lease: TaskLease, task: Task, askAt: number): Promise<boolean>;
  /** Writes the end of a task, once: false when it was finished already, and then nothing is settled. */
  finish(task: Task, settlements: readonly Settlement[]): Promise<boolean>;
  /** False when there was none. */
  remove(owner: string, id: string): Promise<boolean>;
}

const sweep = { batch: 200, pause: 60_000, pauseWhenFull: 200 };
const columns =
  'owner, id, created, updated, finished, expires, deadline, state, format, channel, asked, asks, details';

/** Opens the tasks of the gateway's database. What has expired is removed until the job is done that `onClose` gets. */
export function openTaskStore(
  { stores, ledger }: { readonly stores: Pick<Stores, 'database'>; readonly ledger: Ledger },
  report: ReportError,
  onClose: (job: () => void) => void,
): TaskStore {
  const sql = sqlOf(stores.database);
  onClose(
    startSweeping(
      async () => {
        const gone = await sql.run(() =>
          rows(
            `DELETE FROM tasks WHERE (owner, id) IN
              (SELECT owner, id FROM tasks WHERE expires <= ? AND finished IS NOT NULL LIMIT ?) RETURNING id`,
            Date.now(),
            sweep.batch,
          ),
        );
        return gone.length === sweep.batch;
      },
      sweep,
      (cause) => report(new Error('Tasks that have expired could not be removed.', { cause })),
    ),
  );
  const readAll = (found: readonly Row[]): readonly Task[] =>
    found.flatMap((one) => taskOf(one, report) ?? []);
  const single = async (work: () => Work<Row | undefined>): Promise<Task | undefined> => {
    const found = await sql.run(work);
    return found === undefined ? undefined : taskOf(found, report);
  };

  return {
    async create(task, askAt, settlement) {
      await ledger.settleAfter(settlement === undefined ? [] : [settlement], function* () {
        const values = valuesOf(task);
        const names = [...Object.keys(values), 'ask_at', 'lease', 'lease_until'];
        yield* rows(
          `INSERT INTO tasks (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
          ...Object.values(values),
          askAt,
          '',
          0,
        );
        return true;
      });
    },
    find: (owner, id) =>
      single(() => row(`SELECT ${columns} FROM tasks WHERE owner = ? AND id = ?`, owner, id)),
    list: (owner, query) =>
      sql.run(function* () {
        const place = yield* placeOf(owner, query.after);
        if (query.after !== undefined && place === undefined) return undefined;
        const [sign, order] = query.order === 'asc' ? ['>', 'ASC'] : ['<', 'DESC'];
        const conditions = ['owner = ?'];
        const values: SqlValue[] = [owner];
        if (query.format !== undefined) {
          conditions.push('format = ?');
          values.push(query.format);
        }
        if (place !== undefined) {
          conditions.push(`(created, id) ${sign} (?, ?)`);
          values.push(place[0], place[1]);
        }
        const found = yield* rows(
          `SELECT ${columns} FROM tasks WHERE ${conditions.join(' AND ')} ORDER BY created ${order}, id ${order} LIMIT ? OFFSET ?`,
          ...values,
          query.limit + 1,
          query.skip ?? 0,
        );
        return { tasks: readAll(found.slice(0, query.limit)), hasMore: found.length > query.limit };
      }),
    async claim({ name, milliseconds }, limit) {
      const now = Date.now();
      // Most times there is nothing: a look needs no lock.
      const due = 'finished IS NULL AND ask_at <= ? AND lease_until <= ?';
      const found = await sql.run(function* () {
        const first = yield* row(`SELECT 1 AS due FROM tasks WHERE ${due} LIMIT 1`, now, now);
        if (first === undefined) return [];
        return yield* rows(
          `UPDATE tasks SET lease = ?, lease_until = ? WHERE (owner, id) IN
            (SELECT owner, id FROM tasks WHERE ${due} ORDER BY ask_at LIMIT ?${sql.forUpdateOfFree}) RETURNING ${columns}`,
          name,
          now + milliseconds,
          now,
          now,
          limit,
        );
      });
      return readAll(found);
    },
    claimOne({ name, milliseconds }, owner, id) {
      const now = Date.now();
      return single(() =>
        row(
          `UPDATE tasks SET lease = ?, lease_until = ? WHERE owner = ? AND id = ? AND finished IS NULL AND lease_until <= ?
            RETURNING ${columns}`,
          name,
          now + milliseconds,
          owner,
          id,
          now,
        ),
      );
    },
    async update({ name }, task, askAt) {
      const values = valuesOf(task);
      const names = Object.keys(values);
      const done = await sql.run(() =>
        row(
          `UPDATE tasks SET ${names.map((one) => `${one} = ?`).join(', ')}, ask_at = ?, lease_until = 0
            WHERE owner = ? AND id = ? AND finished IS NULL AND lease = ? RETURNING id`,
          ...Object.values(values),
          Math.min(askAt, task.deadline),
          task.owner,
          task.id,
          name,
        ),
      );
      return done !== undefined;
    },
    async finish(task, settlements) {
      if (!isFinished(task)) throw new Error('A task that goes on was to be finished.');
      return ledger.settleAfter(settlements, function* () {
        const values = valuesOf(task);
        const names = Object.keys(values);
        const done = yield* row(
          `UPDATE tasks SET ${names.map((name) => `${name} = ?`).join(', ')}, lease_until = 0
            WHERE owner = ? AND id = ? AND finished IS NULL RETURNING id`,
          ...Object.values(values),
          task.owner,
          task.id,
        );
        return done !== undefined;
      });
    },
    async remove(owner, id) {
      return (
        (await sql.run(() => row('DELETE FROM tasks WHERE owner = ? AND id = ? RETURNING id', owner, id))) !==
        undefined
      );
    },
  };
}

function* placeOf(owner: string, id: string | undefined): Work<readonly [number, string] | undefined> {
  if (id === undefined) return undefined;
  const found = yield* row('SELECT created FROM tasks WHERE owner = ? AND id = ?', owner, id);
  return found === undefined ? undefined : [Number(found['created']), id];
}

/** Members that have a column of their own. The rest stands in `details`. */
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
  const { askedAt, asks, ...details } = rest;
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
    asked: askedAt,
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
    askedAt: number('asked'),
    asks: number('asks'),
  };
}
