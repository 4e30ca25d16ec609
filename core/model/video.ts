/** Requests for videos and their tasks, and the states of tasks, in neutral form. */
import type { Extra } from './extra.ts';
import type { ImageInput } from './image.ts';
import type { JsonObject } from './json.ts';

/**
 * A request for a video. The reply is a task; the video follows later.
 *
 * @example
 * const encodeRequest = ({ prompt, seconds = 5 }: VideoRequest, { model }: EncodeTarget) => ({ path: '/videos', body: { model, prompt, seconds } });
 */
export interface VideoRequest {
  readonly operation: 'create-video';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly prompt: string;
  /** The first is where the video begins; a second is where it ends, or all are for reference. */
  readonly images: readonly ImageInput[];
  readonly imageRole?: 'first' | 'first-and-last' | 'reference';
  /** Seconds. */
  readonly seconds?: number;
  /** Width and height: `1280x720`. */
  readonly size?: string;
  /** `16:9`. */
  readonly aspectRatio?: string;
  /** `480p`, `720p`, `1080p`. */
  readonly resolution?: string;
  readonly seed?: number;
  readonly negativePrompt?: string;
  /** Number of videos. Default: 1. */
  readonly count?: number;
  /** The video that is made anew: the client's id for it, and towards the provider the provider's. */
  readonly remixOf?: string;
  /** Fields of the provider's own API from the client, merged into the request to the provider. */
  readonly metadata?: JsonObject;
  /** The end user's identifier. */
  readonly user?: string;
  readonly extra?: Extra;
}

/**
 * State of a video task. `completed`, `failed` and `cancelled` never change.
 *
 * @example
 * const state: VideoState = body.done === true ? 'completed' : 'in_progress';
 */
export type VideoState = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

/**
 * State of a video task as reported by its provider: the value of the `result` event of `create-video` and of `get-video`.
 *
 * @example
 * const report: VideoReport = { id: 'task_1', state: 'completed', progress: 100, url: 'https://files.acme.example/1.mp4' };
 */
export interface VideoReport {
  /** The provider's id of the task. */
  readonly id: string;
  /** Undefined for an unknown state: the previous state is kept. */
  readonly state: VideoState | undefined;
  /** Progress from 0 to 100, if the provider reports it. */
  readonly progress?: number;
  /** URLs of the finished video and of its images. */
  readonly url?: string;
  readonly thumbnailUrl?: string;
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Seconds, as made. */
  readonly seconds?: number;
  readonly size?: string;
  /** Unix seconds until which the provider keeps the video. */
  readonly expiresAt?: number;
  /** Data that is needed to poll the task. Stored with it, never shown. */
  readonly handle?: JsonObject;
  readonly extra?: Extra;
  /** Members that the gateway adds when a client reads its task. */
  readonly task?: VideoTaskFacts;
}

/** Data of the gateway about a task, beside the provider's report. Times are Unix milliseconds. */
export interface VideoTaskFacts {
  /** As the client asked for it. */
  readonly model: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time of its end, whatever its outcome. */
  readonly finishedAt?: number;
  readonly prompt: string;
  /** The public id of the video that was made anew. */
  readonly remixOf?: string;
}

/**
 * A question about a task at its provider: `get-video`, `delete-video`.
 *
 * @example
 * const ask = ({ id }: VideoTaskRequest): EncodedRequest => ({ path: `/tasks/${id}`, method: 'GET', body: {} });
 */
export interface VideoTaskRequest {
  readonly operation: 'get-video' | 'delete-video';
  /** The format that is spoken to the provider. */
  readonly format: string;
  readonly model: string;
  /** Id of the task at the provider, and its {@link VideoReport.handle}. */
  readonly id: string;
  readonly handle?: JsonObject;
  /** Number of images in the request, because some providers have separate endpoints by that. */
  readonly images: number;
}
