import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'videos';

/** Where it spells what neutral names mean. */
export const words = spellings({ seconds: 'seconds', images: 'input_reference' });

/** The states by their words; gateways of this format use some of others too. */
export const readState = videoStateReader({
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
