import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'vidu';

/** Its paths, by what a video is made of. */
export const kinds = ['text2video', 'img2video', 'start-end2video', 'reference2video'] as const;

/** Where it spells what neutral names mean. */
export const words = spellings({ seconds: 'duration', images: 'images' });

/** The aspect ratios there are. */
export const ratios = ['16:9', '9:16', '1:1', '4:3', '3:4'];

/** The states by their words. */
export const readState = videoStateReader({
  created: 'queued',
  queueing: 'queued',
  processing: 'in_progress',
  success: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  canceled: 'cancelled',
});

/** The words for the states. */
export const stateWords: Readonly<Record<VideoState, string>> = {
  queued: 'queueing',
  in_progress: 'processing',
  completed: 'success',
  failed: 'failed',
  cancelled: 'cancelled',
};
