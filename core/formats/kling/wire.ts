import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'kling';

/** Where it spells what neutral names mean. */
export const words = spellings({ seconds: 'duration', images: 'image' });

/** The aspect ratios there are. */
export const ratios = ['16:9', '9:16', '1:1'];

/** The states by their words. */
export const readState = videoStateReader({
  submitted: 'queued',
  processing: 'in_progress',
  succeed: 'completed',
  failed: 'failed',
});

/** The words for the states: there is none for what was cancelled. */
export const stateWords: Readonly<Record<VideoState, string>> = {
  queued: 'submitted',
  in_progress: 'processing',
  completed: 'succeed',
  failed: 'failed',
  cancelled: 'failed',
};
