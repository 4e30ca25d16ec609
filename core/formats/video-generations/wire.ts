import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'video-generations';

/** Where it spells what neutral names mean. */
export const words = spellings({ seconds: 'duration', images: 'images' });

/** The states by their words, those of older gateways included. */
export const readState = videoStateReader({
  queued: 'queued',
  submitted: 'queued',
  not_start: 'queued',
  in_progress: 'in_progress',
  processing: 'in_progress',
  completed: 'completed',
  succeeded: 'completed',
  success: 'completed',
  failed: 'failed',
  failure: 'failed',
  cancelled: 'cancelled',
});

/** The words that clients know. */
export const stateWords: Readonly<Record<VideoState, string>> = {
  queued: 'queued',
  in_progress: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'failed',
};
