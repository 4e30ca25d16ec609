import type { ImageRequest } from '../../model/image.ts';
import type { Expected } from '../../sdk/format.ts';
import { imageUnits } from '../_shared/image-units.ts';
import { formatName } from './wire.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Tokens of one image of the largest usual size, by quality: what is not here may come to the most. */
const tokensOf = lookupTable<number>({ low: 408, medium: 1_584 });
const mostTokens = 6_240;
/** Tokens of a sketch, and of a given image. */
const partialTokens = 100;
const givenTokens = 1_600;
/** The same of a given image that is looked at closely, and what is written around a prompt. */
const closelyTokens = 16_384;
const frame = 64;

/** Members in words of providers that name a size: a class of them (`2k`), a name, or width and height. */
const sizeWords = ['resolution', 'image_size', 'imageSize', 'width', 'height'] as const;

/** Returns the size that a request names; a word that no price has where it names several. */
function sizeIn({ size, extra }: ImageRequest): string | undefined {
  const own = extra?.[formatName] ?? {};
  const named = sizeWords.flatMap((word) => (own[word] === undefined ? [] : [own[word]]));
  if (named.length === 0) return size;
  const [first] = named;
  const isAlone = named.length === 1 && size === undefined && typeof first === 'string';
  return isAlone ? first.toLowerCase() : 'unknown';
}

/** Estimates the maximum usage of a request. */
export function expectedOf(request: ImageRequest): Expected {
  const { prompt, images, mask, count = 1, quality, partials = 0 } = request;
  const shown = images.length + (mask === undefined ? 0 : 1);
  const words = Buffer.byteLength(prompt);
  return {
    input: Math.ceil(words / 4) + shown * givenTokens,
    output: count * ((tokensOf[quality ?? ''] ?? mostTokens) + partials * partialTokens),
    units: imageUnits(count, quality, sizeIn(request)),
    most: { input: words + frame + shown * closelyTokens },
  };
}
