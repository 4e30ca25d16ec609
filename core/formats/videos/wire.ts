import type { VideoState } from '../../model/video.ts';
import { stateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'videos';

/** Where it spells what neutral names mean. */
export const words: Readonly<Record<string, string>> = {
  'settings.seconds': 'seconds',
  'settings.size': 'size',
  'settings.aspectRatio': 'aspect_ratio',
  'settings.resolution': 'resolution',
  'settings.seed': 'seed',
  'settings.negativePrompt': 'negative_prompt',
  'settings.user': 'user',
  'settings.images': 'input_reference',
};

/** The states by their words; gateways of this format use some of others too. */
export const readState = stateReader({
  queued: 'queued',
  pending: 'queued',
  in_progress: 'in_progress',
  processing: 'in_progress',
  running: 'in_progress',
  completed: 'completed',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  canceled: 'cancelled',
});

/** The words that clients know: what was cancelled has failed, with a code that says so. */
export const stateWords: Readonly<Record<VideoState, string>> = {
  queued: 'queued',
  in_progress: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'failed',
};
