import type { ImageRequest } from '../../model/image.ts';
import type { Expected } from '../../sdk/format.ts';
import { wordTable } from '../../model/word-table.ts';

/** Tokens of one image of the largest usual size, by quality: what is not here may come to the most. */
const tokensOf = wordTable<number>({ low: 408, medium: 1_584 });
const mostTokens = 6_240;
/** Tokens of a sketch, and of a given image. */
const partialTokens = 100;
const givenTokens = 1_600;
/** The same of a given image that is looked at closely, and what is written around a prompt. */
const closelyTokens = 16_384;
const frame = 64;

/** What a request may use. */
export function expectedOf({
  prompt,
  images,
  mask,
  count = 1,
  quality,
  partials = 0,
}: ImageRequest): Expected {
  const shown = images.length + (mask === undefined ? 0 : 1);
  const words = Buffer.byteLength(prompt);
  return {
    input: Math.ceil(words / 4) + shown * givenTokens,
    output: count * ((tokensOf[quality ?? ''] ?? mostTokens) + partials * partialTokens),
    units: { images: count },
    most: { input: words + frame + shown * closelyTokens },
  };
}
