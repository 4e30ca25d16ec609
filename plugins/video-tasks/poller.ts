/** Polls providers for the state of video tasks until each has ended, and cancels tasks. */
import { randomUUID } from 'node:crypto';
import { lastValueFrom, toArray } from 'rxjs';
import { GatewayError, toGatewayError, type Log } from 'sluice';
import type { VideoReport } from 'sluice/channel-kit';
import { abandon, advance, isFinished, type InternalTools, type Target } from 'sluice/internal';
import type { Task, TaskLease, TaskStore } from './core-types.ts';
import { Polling } from '../_polling.ts';
import { refundOf } from './refund.ts';

/** Options of the polling of tasks. Times are in milliseconds. */
export interface PollerOptions {
  readonly first: number;
  readonly most: number;
  readonly parallel: number;
  readonly patience: number;
}

/** Number of consecutive refusals after which a task counts as lost at the provider. */
const mostRefusals = 3;

/** Polls tasks, and refunds those that fail. */
export class Poller {
  readonly #store: TaskStore;
  readonly #tools: Pick<InternalTools, 'catalog' | 'taskCalls'>;
  readonly #log: Log;
  readonly #options: PollerOptions;
  readonly #lease: TaskLease;
  readonly #polling: Polling<Task>;

  constructor(
    store: TaskStore,
    { log, ...tools }: Pick<InternalTools, 'catalog' | 'taskCalls' | 'log'>,
    options: PollerOptions,
  ) {
    const lease = { name: randomUUID(), milliseconds: options.patience + 10_000 };
    this.#store = store;
    this.#tools = tools;
    this.#log = log;
    this.#options = options;
    this.#lease = lease;
    this.#polling = new Polling(
      {
        keyOf,
        claim: (most) => store.claim(lease, most),
        claimOne: ({ owner, id }) => store.claimOne(lease, owner, id),
        find: ({ owner, id }) => store.find(owner, id),
        poll: (task) => this.#poll(task),
        failed: (error, task) =>
          task === undefined
            ? log.warn({ error }, 'looking for due video tasks failed')
            : log.warn({ task: task.id, error }, 'a video task could not be stored'),
      },
      { ...options, longestPause: 1_000 },
    );
  }

  /** Starts polling the tasks that are due. */
  start(): void {
    this.#polling.start();
  }

  /** Returns the time of the next poll after `asks` polls. */
  nextPollAt(asks: number, now: number): number {
    return this.#polling.nextPollAt(asks, now);
  }

  /** Polls one task and returns it. Returns the stored state where another process polls it, or the provider takes longer than `patience`. */
  refresh(task: Task, patience: number): Promise<Task> {
    return this.#polling.refresh(task, patience);
  }

  /** Stores the end of a task together with its refund, once. Resolves with false where the task had ended before. */
  async finish(task: Task): Promise<boolean> {
    const done = await this.#store.finish(task, refundOf(task, Date.now()));
    if (done)
      this.#log.info({ task: task.id, state: task.state, code: task.error?.code }, 'a video task has ended');
    return done;
  }

  close(): Promise<void> {
    return this.#polling.close();
  }

  async #poll(task: Task): Promise<Task> {
    const next = await this.#next(task);
    const now = Date.now();
    const polled: Task = { ...next, polledAt: now, asks: task.asks + 1 };
    if (isFinished(polled)) {
      if (await this.finish(polled)) return polled;
      return (await this.#store.find(task.owner, task.id)) ?? polled;
    }
    await this.#store.update(this.#lease, polled, this.nextPollAt(polled.asks, now));
    return polled;
  }

  /** Requests the state of a task, and returns the task with it. */
  async #next(task: Task): Promise<Task> {
    const target = this.#targetOf(task);
    let polled = task;
    // A channel that is gone may come back with the next configuration.
    if (target !== undefined) {
      try {
        polled = advance(task, await this.#report(task, target), Date.now());
      } catch (error) {
        polled = this.#refused(task, toGatewayError(error));
      }
    }
    if (isFinished(polled) || Date.now() < task.deadline) return polled;
    return abandon(polled, 'task_timeout', 'The video was not generated in time.', Date.now());
  }

  #targetOf({ channel: id, key: keyId, upstreamModel: model }: Task): Target | undefined {
    const channel = this.#tools.catalog.channels.find((one) => one.id === id);
    const key = channel?.keys.find((one) => one.id === keyId) ?? channel?.keys[0];
    if (channel === undefined || key === undefined) return undefined;
    return { channel, key, model, traits: channel.traits(model) };
  }

  #report(task: Task, target: Target): Promise<VideoReport> {
    const call = this.#tools.taskCalls(requestFor(task, 'get-video'), target);
    return this.#polling.within(
      () => call.end(),
      () => reportIn(call),
    );
  }

  /** Returns the task after a failed poll. Most failures are not about the task. One that the provider refuses several times in a row is given up. */
  #refused(task: Task, error: GatewayError): Task {
    const now = Date.now();
    if (error.code === 'content_policy_violation') return abandon(task, error.code, error.message, now);
    if (error.retryable || error.origin !== 'upstream') {
      this.#log.debug({ task: task.id, error }, 'polling a video task failed');
      return task;
    }
    const refusals = task.refusals + 1;
    if (refusals >= mostRefusals) return abandon(task, 'generation_failed', error.message, now);
    return { ...task, refusals };
  }

  /** Requests the current URL of a finished video or its thumbnail; undefined where the provider does not return one. */
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

  /** Cancels a task at the provider. Rejects with GatewayError where the provider cannot cancel, or refuses. */
  async cancel(task: Task): Promise<void> {
    const target = this.#targetOf(task);
    const formats = target?.channel.speaks['delete-video'];
    if (target === undefined || formats === undefined || !formats.includes(task.upstreamFormat)) {
      throw new GatewayError(
        'invalid_request',
        'This video is still being made, and its provider does not support cancellation.',
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
    throw new GatewayError('upstream_error', 'The upstream returned no state of the task.', {
      origin: 'upstream',
    });
  return result.value as VideoReport;
}

/** Returns the request for a task's state or deletion. */
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
