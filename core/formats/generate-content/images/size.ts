import type { ImageRequest } from '../../../model/image.ts';
import type { JsonObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { ratioOfSize } from '../../_shared/video-sizes.ts';

/** Longest side in pixels that a name stands for, the smallest first. */
const sizes = [
  ['1K', 1_800],
  ['2K', 3_000],
  ['4K', Infinity],
] as const;

/**
 * Converts a size to an aspect ratio and a size class, if the model has them: `1024x1536` is 2:3 in the default class. Accepts also values
 * of the format (`16:9`, `2K`). Reports sizes that are not supported.
 */
export function writeSize(
  { size }: ImageRequest,
  ratios: readonly string[],
  { images }: ModelTraits,
  drop: (path: string) => void,
): JsonObject {
  if (size === undefined || size === 'auto') return {};
  if (ratios.includes(size)) return { aspectRatio: size };
  const largest = sizes.findIndex(([name]) => name === (images?.largest ?? '1K'));
  const named = sizes.findIndex(([name]) => name === size.toUpperCase());
  if (named >= 0) return classOf(named, largest, drop);
  const [width = 0, height = 0] = /^(\d{1,5})x(\d{1,5})$/.exec(size)?.slice(1).map(Number) ?? [];
  if (width === 0 || height === 0) {
    drop('size');
    return {};
  }
  const ratio = ratioOfSize(size, ratios);
  if (ratio === undefined) drop('size');
  const longest = Math.max(width, height);
  return {
    ...(ratio === undefined ? {} : { aspectRatio: ratio }),
    ...classOf(
      sizes.findIndex(([, most]) => longest <= most),
      largest,
      drop,
    ),
  };
}

/** Returns the field for the size; empty for the default size. */
function classOf(wanted: number, largest: number, drop: (path: string) => void): JsonObject {
  if (wanted > largest) drop('size');
  const [name = '1K'] = sizes[Math.min(wanted, largest)] ?? [];
  return name === '1K' ? {} : { imageSize: name };
}
