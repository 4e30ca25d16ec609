import type { VideoState } from '../../model/video.ts';
import { spellings, videoStateReader } from '../_shared/video-codec.ts';

/** The format's name. */
export const name = 'jimeng';

/** The query that asks for a video, and the one that asks how far it is. */
export const submitQuery = { Action: 'CVSync2AsyncSubmitTask', Version: '2022-08-31' };
/** Of the same path. */
export const resultQuery = { Action: 'CVSync2AsyncGetResult', Version: '2022-08-31' };

/** Where it spells what neutral names mean. */
export const words = spellings({ seconds: 'frames', images: 'image_urls' });

/** The aspect ratios there are. */
export const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'];

/** Frames in a second; one more is the first. */
export const frameRate = 24;

/** What a sound answer says. */
export const soundCode = 10_000;

/** The states by their words. */
export const readState = videoStateReader({
  in_queue: 'queued',
  generating: 'in_progress',
  done: 'completed',
  not_found: 'failed',
  expired: 'failed',
});

/** The words for the states that have one: a failure is told by its code. */
export const stateWords: Readonly<Partial<Record<VideoState, string>>> = {
  queued: 'in_queue',
  in_progress: 'generating',
  completed: 'done',
};
