/** Converts between the sizes, aspect ratios and resolutions of videos. */
import type { VideoRequest } from '../../model/video.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Maximum deviation of a size from a ratio that still matches it. */
const tolerance = 0.03;

const plain = lookupTable<string>({
  // Sizes that are called by the ratio next to theirs.
  '1792x1024': '16:9',
  '1024x1792': '9:16',
});

function sidesOf(size: string): readonly [number, number] {
  const [width = 0, height = 0] = size.split('x').map(Number);
  return [width, height];
}

/**
 * Returns the aspect ratio of a size, such as `1280x720`, among those that a provider knows. Returns undefined when none is near.
 *
 * @example
 * const ratio = ratioOfSize('1280x720', ['1:1', '16:9']); // 16:9
 */
export function ratioOfSize(size: string, known: readonly string[]): string | undefined {
  const called = plain[size];
  if (called !== undefined && known.includes(called)) return called;
  const [width, height] = sidesOf(size);
  const wanted = Math.log(width / height);
  let best: { readonly ratio: string; readonly off: number } | undefined;
  for (const ratio of known) {
    const [wide = 1, high = 1] = ratio.split(':').map(Number);
    const off = Math.abs(Math.log(wide / high) - wanted);
    if (best === undefined || off < best.off) best = { ratio, off };
  }
  return best !== undefined && best.off <= tolerance ? best.ratio : undefined;
}

/** Returns the lines of a picture of a size: its short side. */
export function linesOfSize(size: string): number {
  const [width, height] = sidesOf(size);
  return Math.min(width, height);
}

/** Returns `480p`, `720p` or `1080p`, after the short side; undefined for other sizes. */
export function resolutionOfSize(size: string): string | undefined {
  const short = linesOfSize(size);
  // The large sizes of 1024 lines are closest to 1080p.
  if (short === 1024) return '1080p';
  return [360, 480, 540, 720, 1080, 1440, 2160].includes(short) ? `${short}p` : undefined;
}

/**
 * Returns the aspect ratio that a request asks for, by `aspectRatio` or by its size, among those that the provider knows. Reports what the
 * provider cannot do, and returns undefined then.
 *
 * @example
 * const ratio = requestedRatio(request, ['16:9', '9:16', '1:1'], target);
 */
export function requestedRatio(
  { aspectRatio, size }: VideoRequest,
  known: readonly string[],
  { drop }: Pick<EncodeTarget, 'drop'>,
): string | undefined {
  if (aspectRatio !== undefined) {
    if (known.includes(aspectRatio)) return aspectRatio;
    drop('settings.aspectRatio');
    return undefined;
  }
  if (size === undefined) return undefined;
  const ratio = ratioOfSize(size, known);
  if (ratio === undefined) drop('settings.size');
  return ratio;
}

/**
 * Returns the resolution that a request asks for, by `resolution` or by its size: `720p`. Returns undefined where it names neither.
 *
 * @example
 * const resolution = requestedResolution(request) ?? '720p';
 */
export function requestedResolution({ resolution, size }: VideoRequest): string | undefined {
  return resolution ?? (size === undefined ? undefined : resolutionOfSize(size));
}

const shortSides = lookupTable<number>({ '480p': 480, '720p': 720, '1080p': 1080 });

/**
 * Returns width and height as `1280x720`: the size that a request names, or one made of its aspect ratio and resolution. Returns undefined
 * where it names neither.
 *
 * @example
 * const size = requestedSize(request) ?? '1280x720';
 */
export function requestedSize({ size, aspectRatio, resolution }: VideoRequest): string | undefined {
  if (size !== undefined) return size;
  const [wide = 0, high = 0] = (aspectRatio ?? '').split(':').map(Number);
  const short = shortSides[resolution ?? '720p'];
  if (!(wide > 0 && high > 0) || short === undefined) return undefined;
  // Encoders want even sides.
  const long = Math.round((short * Math.max(wide, high)) / Math.min(wide, high) / 2) * 2;
  return wide >= high ? `${long}x${short}` : `${short}x${long}`;
}
