/** Stored data of a video task, the transitions between its states, and the report that clients get. */
import type { Amounts } from './usage-record.ts';
import type { JsonObject } from './json.ts';
import type { VideoReport, VideoState } from './video.ts';

/** Data of one task. Times are Unix milliseconds. */
export interface Task {
  /** As its owner knows it. */
  readonly id: string;
  /** Id of the API key that created it; empty when the gateway requires no keys. Other keys cannot see the task. */
  readonly owner: string;
  /** The format in which it was made. */
  readonly format: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly finishedAt?: number;
  /** Time at which the gateway deletes it. */
  readonly expiresAt: number;
  /** Time at which the gateway stops polling it. */
  readonly deadline: number;
  readonly state: VideoState;
  /** 0 to 100. */
  readonly progress: number;
  /** Requested model, and the provider's name of the model. */
  readonly model: string;
  readonly upstreamModel: string;
  /** Target of the task: channel, key, and format of the requests to it. */
  readonly channel: string;
  readonly key: string;
  readonly upstreamFormat: string;
  /** The provider's id, and what must be sent with it. */
  readonly upstreamId: string;
  readonly handle?: JsonObject;
  readonly images: number;
  readonly prompt: string;
  readonly seconds?: number;
  readonly size?: string;
  readonly remixOf?: string;
  readonly url?: string;
  readonly thumbnailUrl?: string;
  /** Until when the provider keeps what it made. */
  readonly keptUntil?: number;
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Charge of the task, its time, and the id of its usage record. */
  readonly charged: Amounts;
  readonly chargedAt: number;
  readonly chargeId: string;
  /** Sums of end users that it was charged to as well. */
  readonly endUsers?: readonly { readonly holder: string; readonly series: string }[];
  /** Time of the last poll, number of polls, and number of failed polls in a row. */
  readonly polledAt: number;
  readonly asks: number;
  readonly refusals: number;
}

/** Allowed next states of each state. A state without any is final. */
export const transitions: Readonly<Record<VideoState, readonly VideoState[]>> = {
  queued: ['queued', 'in_progress', 'completed', 'failed', 'cancelled'],
  in_progress: ['in_progress', 'completed', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
};

/** True for a task that has come to its end. */
export function isFinished({ state }: Pick<Task, 'state'>): boolean {
  return transitions[state].length === 0;
}

/** Progress of each state while the provider reports none. */
const usualProgress: Readonly<Record<VideoState, number>> = {
  queued: 0,
  in_progress: 30,
  completed: 100,
  failed: 100,
  cancelled: 100,
};

/**
 * Returns the task after a report of its provider. A transition that is not allowed, or an unknown state, leaves the state unchanged.
 * Progress never decreases, and reaches 100 only at the end. A finished task is returned unchanged.
 */
export function advance(task: Task, report: VideoReport, now: number): Task {
  if (isFinished(task)) return task;
  const wanted = report.state ?? task.state;
  const state = transitions[task.state].includes(wanted) ? wanted : task.state;
  const over = isFinished({ state });
  const percent = Math.round(report.progress ?? usualProgress[state]);
  const { url, thumbnailUrl, seconds, size, error, handle, expiresAt } = report;
  return {
    ...task,
    state,
    progress: over ? 100 : Math.min(99, Math.max(task.progress, Number.isFinite(percent) ? percent : 0)),
    updatedAt: now,
    refusals: 0,
    ...(over ? { finishedAt: now } : {}),
    ...(url === undefined ? {} : { url }),
    ...(thumbnailUrl === undefined ? {} : { thumbnailUrl }),
    ...(seconds === undefined ? {} : { seconds }),
    ...(size === undefined ? {} : { size }),
    ...(expiresAt === undefined ? {} : { keptUntil: expiresAt * 1000 }),
    ...(handle === undefined ? {} : { handle: { ...task.handle, ...handle } }),
    ...(state === 'failed'
      ? { error: error ?? { code: 'generation_failed', message: 'The video could not be made.' } }
      : {}),
    ...(state === 'cancelled'
      ? { error: { code: 'cancelled', message: 'The making of the video was cancelled.' } }
      : {}),
  };
}

/** Returns the task as failed for a reason of the gateway. A finished task is returned unchanged. */
export function abandon(task: Task, code: string, message: string, now: number): Task {
  return advance(task, { id: task.upstreamId, state: 'failed', error: { code, message } }, now);
}

/** Members of a task that clients see. */
export function reportOf(task: Task): VideoReport {
  const { url, thumbnailUrl, seconds, size, error, keptUntil, finishedAt, remixOf } = task;
  return {
    id: task.id,
    state: task.state,
    progress: task.progress,
    ...(url === undefined ? {} : { url }),
    ...(thumbnailUrl === undefined ? {} : { thumbnailUrl }),
    ...(seconds === undefined ? {} : { seconds }),
    ...(size === undefined ? {} : { size }),
    ...(error === undefined ? {} : { error }),
    ...(keptUntil === undefined ? {} : { expiresAt: Math.floor(keptUntil / 1000) }),
    task: {
      model: task.model,
      createdAt: task.createdAt,
      updatedAt: task.updatedAt,
      prompt: task.prompt,
      ...(finishedAt === undefined ? {} : { finishedAt }),
      ...(remixOf === undefined ? {} : { remixOf }),
    },
  };
}
