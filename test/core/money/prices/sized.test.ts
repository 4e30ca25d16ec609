import { describe, expect, test } from 'vitest';
import { UnitPrices } from '../../../../core/money/prices/unit-prices.ts';

/** Dollars of one image, or one second. */
const dollars = (pico: bigint): number => Number(pico) / 1e12;

describe('an image', () => {
  const dalle = new UnitPrices({
    perImageAt: {
      'standard/1024x1024': 0.04,
      'standard/1024x1792': 0.08,
      'hd/1024x1024': 0.08,
      'hd/1024x1792': 0.12,
    },
  });
  test.each([
    [undefined, 0.04],
    ['1024x1792', 0.08],
    ['1792x1024', 0.08],
    ['hd', 0.08],
    ['HD/1024x1792', 0.12],
    ['standard/512x512', 0.04],
    ['hd/4096x4096', 0.12],
    ['ultra/1024x1024', 0.12],
    ['wide', 0.12],
  ])('%s with a usual quality costs %d', (name, price) => {
    const units = name === undefined ? { images: 1 } : { images: 1, imagesAt: { [name]: 1 } };
    expect(dollars(dalle.cost(units))).toBe(price);
    expect(dollars(dalle.most(units))).toBe(name === undefined ? 0.12 : price);
  });

  const classes = new UnitPrices({ perImage: 0.15, perImageAt: { '1k': 0.15, '2k': 0.2, '4k': 0.3 } });
  test.each([
    ['2K', 0.2],
    ['1920x1080', 0.2],
    ['1024x1024', 0.15],
    ['high/4k', 0.3],
    ['high', 0.3],
    ['8k', 0.3],
    ['unknown', 0.3],
  ])('%s by its class costs %d', (name, price) => {
    expect(dollars(classes.cost({ images: 2, imagesAt: { [name]: 2 } }))).toBe(price * 2);
  });

  test('costs the same whatever its size where the row names none', () => {
    const plain = new UnitPrices({ perImage: 0.02 });
    expect(dollars(plain.most({ images: 3, imagesAt: { 'hd/4096x4096': 3 } }))).toBe(0.06);
  });
});

describe('a second', () => {
  const seconds = new UnitPrices({ perSecond: 0.1, perSecondAt: { '480p': 0.05, '1080p': 0.12, '4k': 0.3 } });
  test.each([
    ['480p', 0.05],
    ['720p', 0.1],
    ['1080P', 0.12],
    ['2k', 0.12],
    ['2160p', 0.3],
    ['cinema', 0.3],
  ])('of %s costs %d', (name, price) => {
    expect(dollars(seconds.cost({ seconds: 10, secondsAt: { [name]: 10 } }))).toBeCloseTo(price * 10, 9);
  });
});
