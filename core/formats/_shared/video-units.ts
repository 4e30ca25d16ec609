/** Seconds and images by which a video is charged. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Units } from '../../model/usage.ts';
import type { VideoRequest } from '../../model/video.ts';
import { linesOfSize, resolutionOfSize } from './video-sizes.ts';

/** Members in words of providers that decide how large a video is. */
const sizeWords = new Set(
  'resolution size quality mode video_size output_resolution outputResolution width height ratio'.split(' '),
);

/**
 * Returns the length in seconds by which a video is priced whose request names none.
 *
 * @example
 * const seconds = request.seconds ?? defaultSeconds(request);
 */
export function defaultSeconds({ format }: VideoRequest): number {
  return format === 'videos' ? 4 : 5;
}

/** Returns what a video is charged by: its seconds with the resolution that the request names, and the images that it is made from. */
export function videoUnits(request: VideoRequest): Units {
  const { count = 1, images } = request;
  const seconds = (request.seconds ?? defaultSeconds(request)) * count;
  const resolution = resolutionIn(request);
  return {
    seconds,
    ...(resolution === undefined ? {} : { secondsAt: { [resolution]: seconds } }),
    ...(images.length === 0 ? {} : { images: images.length }),
  };
}

/** Returns the resolution that a request names; a word that no price has where it may name another one in words of the provider. */
function resolutionIn(request: VideoRequest): string | undefined {
  const { resolution, size, metadata = {}, extra } = request;
  const own = new Set([...wordsIn(metadata), ...Object.values(extra ?? {}).flatMap(wordsIn)]);
  const named = resolution ?? size;
  if (named !== undefined) own.add(nameOf(named));
  const [first] = own;
  return own.size > 1 ? 'unknown' : first;
}

function wordsIn(members: JsonObject): readonly string[] {
  const words: string[] = [];
  const read = (name: string, value: JsonValue | undefined): void => {
    if (!sizeWords.has(name) || value === null || value === undefined) return;
    // `16:9` is a ratio without a size; Runway writes sizes as `1920:1080`.
    if (name === 'ratio' && !/^\d{3}/.test(String(value))) return;
    words.push(typeof value === 'string' ? nameOf(value) : 'unknown');
  };
  for (const [name, value] of Object.entries(members)) {
    read(name, value);
    // Some providers have settings in an object of their own.
    if (isObject(value)) for (const [inner, one] of Object.entries(value)) read(inner, one);
  }
  return words;
}

/** Returns `720p` for `1280x720`; returns names of resolutions unchanged. */
function nameOf(word: string): string {
  const text = word.slice(0, 100).toLowerCase();
  const size = text.replace(/[*×:]/, 'x');
  if (!/^\d{3,5}x\d{3,5}$/.test(size)) return text;
  return resolutionOfSize(size) ?? `${linesOfSize(size)}p`;
}
