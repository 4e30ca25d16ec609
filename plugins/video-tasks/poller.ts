import { randomUUID } from 'node:crypto';
import { lastValueFrom, toArray } from 'rxjs';
import { GatewayError } from 'sluice';
import {
  abandon,
  advance,
  isFinished,
  toGatewayError,
  type InternalTools,
  type Log,
  type Target,
  type Task,
  type TaskLease,
  type TaskStore,
  type VideoReport,
} from 'sluice/internal';
import { refundOf } from './refund.ts';

/** How providers are asked. Times are in milliseconds. */
export interface PollerOptions {
  readonly first: number;
  readonly most: number;
  readonly parallel: number;
  readonly patience: number;
}

/** Each pause is so many times the one before. */
const growth = 1.5;

/** After so many refusals in a row a provider is believed to have no such task any more. */
const mostRefusals = 3;

/**
 * Asks providers how their tasks are, until each has come to its end. Of all gateways on one database one asks about a task at a time: it
 * holds a lease, which another takes over when it is gone.
 */
export class Poller {
  readonly #store: TaskStore;
  readonly #tools: Pick<InternalTools, 'catalog' | 'taskCalls'>;
  readonly #log: Log;
  readonly #options: PollerOptions;
  readonly #lease: TaskLease;
  readonly #running = new Map<string, Promise<Task>>();
  /** Ends what is being asked. */
  readonly #ends = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #closed = false;

  constructor(
    store: TaskStore,
    { log, ...tools }: Pick<InternalTools, 'catalog' | 'taskCalls' | 'log'>,
    options: PollerOptions,
  ) {
    this.#store = store;
    this.#tools = tools;
    this.#log = log;
    this.#options = options;
    this.#lease = { name: randomUUID(), milliseconds: options.patience + 10_000 };
  }

  /** Looks again and again for tasks that are due. */
  start(): void {
    const pause = Math.min(1_000, Math.max(20, this.#options.first / 5));
    const again = (): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => {
        this.#looking = this.#look().finally(again);
      }, pause).unref();
    };
    again();
  }

  /** When a task that was just made, or asked about so often, is to be asked about. */
  nextAsk(asks: number, now: number): number {
    return now + Math.min(this.#options.most, this.#options.first * growth ** Math.min(asks, 20));
  }

  /** The task as its provider has it now; as it was known where somebody else is asking, or the provider takes longer than `patience`. */
  async refresh(task: Task, patience: number): Promise<Task> {
    const running = this.#running.get(keyOf(task));
    const asked = running ?? this.#claimAndAsk(task);
    const timer = Promise.withResolvers<Task>();
    const timeout = setTimeout(() => timer.resolve(task), patience);
    try {
      return await Promise.race([asked, timer.promise]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Keeps the end of a task and gives back what was charged for it, once; false when it had come to an end before. */
  async finish(task: Task): Promise<boolean> {
    const done = await this.#store.finish(task, refundOf(task, Date.now()));
    if (done)
      this.#log.info({ task: task.id, state: task.state, code: task.error?.code }, 'a video task has ended');
    return done;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    for (const end of this.#ends) end();
    await Promise.allSettled(this.#running.values());
  }

  async #look(): Promise<void> {
    try {
      const free = this.#options.parallel - this.#running.size;
      if (free <= 0 || this.#closed) return;
      for (const task of await this.#store.claim(this.#lease, free)) void this.#run(task);
    } catch (error) {
      if (!this.#closed) this.#log.warn({ error }, 'video tasks cannot be looked for now');
    }
  }

  async #claimAndAsk(task: Task): Promise<Task> {
    const claimed = await this.#store.claimOne(this.#lease, task.owner, task.id);
    if (claimed === undefined) return (await this.#store.find(task.owner, task.id)) ?? task;
    return this.#run(claimed);
  }

  #run(task: Task): Promise<Task> {
    const key = keyOf(task);
    const run = this.#ask(task)
      .catch((error: unknown) => {
        if (!this.#closed) this.#log.warn({ task: task.id, error }, 'a video task could not be kept');
        return task;
      })
      .finally(() => void this.#running.delete(key));
    this.#running.set(key, run);
    return run;
  }

  async #ask(task: Task): Promise<Task> {
    const next = await this.#next(task);
    const now = Date.now();
    const asked: Task = { ...next, askedAt: now, asks: task.asks + 1 };
    if (isFinished(asked)) {
      if (await this.finish(asked)) return asked;
      return (await this.#store.find(task.owner, task.id)) ?? asked;
    }
    await this.#store.update(this.#lease, asked, this.nextAsk(asked.asks, now));
    return asked;
  }

  /** The task after its provider was asked. */
  async #next(task: Task): Promise<Task> {
    const target = this.#targetOf(task);
    let told = task;
    // A channel that is gone may come back with the next configuration.
    if (target !== undefined) {
      try {
        told = advance(task, await this.#report(task, target), Date.now());
      } catch (error) {
        told = this.#refused(task, toGatewayError(error));
      }
    }
    if (isFinished(told) || Date.now() < task.deadline) return told;
    return abandon(told, 'task_timeout', 'The video was not made in time.', Date.now());
  }

  #targetOf({ channel: id, key: keyId, upstreamModel: model }: Task): Target | undefined {
    const channel = this.#tools.catalog.channels.find((one) => one.id === id);
    const key = channel?.keys.find((one) => one.id === keyId) ?? channel?.keys[0];
    if (channel === undefined || key === undefined) return undefined;
    return { channel, key, model, traits: channel.traits(model) };
  }

  async #report(task: Task, target: Target): Promise<VideoReport> {
    const call = this.#tools.taskCalls(requestFor(task, 'get-video'), target);
    const timer = setTimeout(() => call.end(), this.#options.patience);
    const end = (): void => call.end();
    this.#ends.add(end);
    try {
      return await reportIn(call);
    } finally {
      clearTimeout(timer);
      this.#ends.delete(end);
      call.end();
    }
  }

  /** Most failures say nothing of the task. A provider that keeps saying that the question is wrong has it no longer. */
  #refused(task: Task, error: GatewayError): Task {
    const now = Date.now();
    if (error.code === 'content_policy_violation') return abandon(task, error.code, error.message, now);
    if (error.retryable || error.origin !== 'upstream') {
      this.#log.debug({ task: task.id, error }, 'a provider could not be asked for a video task');
      return task;
    }
    const refusals = task.refusals + 1;
    if (refusals >= mostRefusals) return abandon(task, 'generation_failed', error.message, now);
    return { ...task, refusals };
  }

  /** Where a finished video is now; undefined when the provider does not say. */
  async freshUrl(task: Task, part: string): Promise<string | undefined> {
    const target = this.#targetOf(task);
    if (target === undefined) return undefined;
    try {
      const { url, thumbnailUrl } = await this.#report(task, target);
      return part === 'video' ? url : thumbnailUrl;
    } catch {
      return undefined;
    }
  }

  /** Tells the provider to stop. Rejects with GatewayError when it cannot, or will not. */
  async cancel(task: Task): Promise<void> {
    const target = this.#targetOf(task);
    const spoken = target?.channel.speaks['delete-video'];
    if (target === undefined || spoken === undefined || !spoken.includes(task.upstreamFormat)) {
      throw new GatewayError(
        'invalid_request',
        'This video is still being made, and its provider cannot be told to stop.',
      );
    }
    const call = this.#tools.taskCalls(requestFor(task, 'delete-video'), target);
    const timer = setTimeout(() => call.end(), this.#options.patience);
    try {
      await reportIn(call);
    } finally {
      clearTimeout(timer);
      call.end();
    }
  }
}

async function reportIn(call: ReturnType<InternalTools['taskCalls']>): Promise<VideoReport> {
  const events = await lastValueFrom((await call.send()).pipe(toArray()));
  const result = events.find((event) => event.type === 'result');
  if (result === undefined)
    throw new GatewayError('upstream_error', 'The upstream said nothing of the task.', {
      origin: 'upstream',
    });
  return result.value as VideoReport;
}

/** What a task is asked by. */
export function requestFor(
  { upstreamFormat, upstreamModel, upstreamId, handle, images }: Task,
  operation: 'get-video' | 'delete-video',
) {
  return {
    operation,
    format: upstreamFormat,
    model: upstreamModel,
    id: upstreamId,
    images,
    ...(handle === undefined ? {} : { handle }),
  } as const;
}

function keyOf({ owner, id }: Task): string {
  return JSON.stringify([owner, id]);
}
