/** Embeddings of the demo channel: vectors from hashes of words, so that texts with the same words are similar. */
import { createHash } from 'node:crypto';
import { wrongValue } from 'sluice';
import type { EmbedInput, EmbedRequest } from 'sluice/channel-kit';
import type { DemoOperation } from './demo-operation.ts';

/** Default length of a vector. */
const usualLength = 256;
/** The longest that is made. */
const longest = 8192;

/** Operation `embed` of the demo. */
export const embed: DemoOperation<EmbedRequest> = {
  speaks: ['embeddings', 'generate-content'],
  text: ({ inputs }) => inputs.map(textOf).join(' '),
  answer({ inputs, dimensions = usualLength, format }) {
    if (dimensions > longest) {
      const field = format === 'generate-content' ? 'outputDimensionality' : 'dimensions';
      throw wrongValue(field, `at most ${longest}`);
    }
    const tokens = inputs.reduce((sum, input) => sum + wordsOf(input).length, 0);
    return [
      { type: 'result', value: { vectors: inputs.map((input) => vectorOf(input, dimensions)) } },
      {
        type: 'usage',
        usage: { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
      },
    ];
  },
};

function textOf(input: EmbedInput): string {
  if (input.type === 'text') return input.text;
  return input.type === 'tokens' ? input.tokens.join(' ') : JSON.stringify(input.value);
}

function wordsOf(input: EmbedInput): readonly string[] {
  return wordsIn(textOf(input));
}

/** Returns the words of a text in lower case; the text itself when it has none. */
export function wordsIn(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu);
  return words ?? [text];
}

/** Returns a vector of length one, with numbers that 32-bit floats represent exactly. */
function vectorOf(input: EmbedInput, length: number): readonly number[] {
  const sums = new Float32Array(length);
  for (const word of wordsOf(input)) {
    const hash = createHash('sha256').update(word).digest();
    for (let at = 0; at < 32; at += 4) {
      const index = hash.readUInt32LE(at) % length;
      sums[index] = (sums[index] ?? 0) + (at % 8 === 0 ? 1 : -1);
    }
  }
  const norm = Math.sqrt(sums.reduce((sum, value) => sum + value * value, 0));
  if (norm === 0) sums[0] = 1;
  return Array.from(sums, (value) => Math.fround(norm === 0 ? value : value / norm));
}
