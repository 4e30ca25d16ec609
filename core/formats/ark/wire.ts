import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'ark';

/** Below the version: where tasks are made, asked for and cancelled. */
export const tasksPath = '/contents/generations/tasks';

/** Where it spells what neutral names mean. */
export const words = spellings({
  seconds: 'duration',
  images: 'content',
  aspectRatio: 'ratio',
  user: 'safety_identifier',
});

/** The aspect ratios there are, besides `adaptive`. */
export const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'];

/** The states by their words, older ones included. A task that took too long has failed. */
export const readState = videoStateReader({
  queued: 'queued',
  pending: 'queued',
  running: 'in_progress',
  processing: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  expired: 'failed',
  cancelled: 'cancelled',
});

/** The words for the states. */
export const stateWords: Readonly<Record<VideoState, string>> = {
  queued: 'queued',
  in_progress: 'running',
  completed: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
};
