import { describe, expect, test } from 'vitest';
import { bytesOf, decodeG711, encodeG711, Resampler, samplesOf } from '../../../channels/_kit/live/sound.ts';

const tone = (hertz: number, rate: number, seconds: number): Int16Array =>
  Int16Array.from(
    { length: rate * seconds },
    (_, at) => 12_000 * Math.sin((2 * Math.PI * hertz * at) / rate),
  );

const loudness = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);

/** Without the beginning, where the filter is not full. */
const settled = (samples: Int16Array): Int16Array => samples.slice(200);

describe('G.711', () => {
  // Values of ITU-T G.711, tables 1a to 2b, in 16 bits.
  test.each([
    ['mu', 0xff, 0],
    ['mu', 0x80, 32_124],
    ['mu', 0x00, -32_124],
    ['mu', 0xfe, 8],
    ['alpha', 0xd5, 8],
    ['alpha', 0x55, -8],
    ['alpha', 0xaa, 32_256],
    ['alpha', 0x2a, -32_256],
  ] as const)('%s %i is %i', (law, byte, value) => {
    expect([...decodeG711(Buffer.from([byte]), law)]).toEqual([value]);
  });

  test.each(['mu', 'alpha'] as const)(
    'each byte of %s is encoded again as it was, or as its equal',
    (law) => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const values = decodeG711(bytes, law);
      expect(decodeG711(encodeG711(values, law), law)).toEqual(values);
    },
  );

  test('a sample becomes the nearest value', () => {
    const samples = Int16Array.from([-32_768, -1000, -3, 3, 1000, 32_767]);
    const again = decodeG711(encodeG711(samples, 'mu'), 'mu');
    for (const [at, sample] of samples.entries())
      expect(Math.abs((again[at] ?? 0) - sample)).toBeLessThanOrEqual(Math.max(4, Math.abs(sample) / 16));
  });
});

describe('bytes', () => {
  test('are little-endian, and an odd last one is left out', () => {
    expect([...samplesOf(Buffer.from([0x01, 0x00, 0xff, 0xff, 0x07]))]).toEqual([1, -1]);
    expect(bytesOf(Int16Array.from([1, -1]))).toEqual(Buffer.from([0x01, 0x00, 0xff, 0xff]));
  });
});

describe('another rate', () => {
  test.each([
    [24_000, 8_000],
    [24_000, 16_000],
    [8_000, 24_000],
    [48_000, 16_000],
  ])('%i to %i keeps length and loudness of speech', (from, to) => {
    const output = new Resampler(from, to).push(tone(440, from, 1));
    expect(output).toHaveLength(to);
    expect(loudness(settled(output)) / loudness(tone(440, to, 1))).toBeCloseTo(1, 1);
  });

  test('takes away what the lower rate cannot carry', () => {
    const output = new Resampler(24_000, 8_000).push(tone(6_000, 24_000, 1));
    expect(loudness(settled(output))).toBeLessThan(loudness(tone(6_000, 24_000, 1)) / 30);
  });

  test.each([1, 7, 480, 1001])('pieces of %i samples join without a difference', (size) => {
    const whole = tone(700, 24_000, 0.25);
    const pieces = new Resampler(24_000, 8_000);
    const joined: number[] = [];
    for (let at = 0; at < whole.length; at += size) joined.push(...pieces.push(whole.slice(at, at + size)));
    expect(joined).toEqual([...new Resampler(24_000, 8_000).push(whole)]);
  });

  test('the same rate is the same sound', () => {
    const sound = tone(100, 8_000, 0.01);
    expect(new Resampler(8_000, 8_000).push(sound)).toBe(sound);
  });
});
