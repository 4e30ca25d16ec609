import { expect, test } from 'vitest';
import { TargetLoads } from '../../../core/routing/load.ts';

test('what runs is counted by key and by channel', () => {
  const load = new TargetLoads();
  load.channel('x').key('a').enter();
  load.channel('x').key('b').enter();
  load.channel('x').key('b').enter();
  load.channel('x').key('a').leave();
  expect([
    load.channel('x').running,
    load.channel('x').key('a').running,
    load.channel('x').key('b').running,
  ]).toEqual([2, 0, 2]);
});

test('a time that gets worse is believed quicker than one that gets better, and fades when nothing new is heard', () => {
  const key = new TargetLoads().channel('x').key('a');
  expect(key.firstToken('m', 0)).toBeUndefined();
  key.measured('m', 100, 0);
  expect(key.firstToken('m', 0)).toBe(100);
  key.measured('m', 300, 1);
  expect(key.firstToken('m', 1)).toBe(200);
  key.measured('m', 100, 2);
  expect(key.firstToken('m', 2)).toBeGreaterThan(180);
  expect(key.firstToken('m', 60_000)).toBeLessThan(40);
});

test('an attempt that was given up says no more than that it would have taken longer', () => {
  const key = new TargetLoads().channel('x').key('a');
  key.measured('m', 100, 0);
  key.measured('m', 50, 1, true);
  expect(key.firstToken('m', 1)).toBeCloseTo(100, 1);
  key.measured('m', 500, 2, true);
  expect(key.firstToken('m', 2)).toBeGreaterThan(250);
});

test('strangers who name ever new models fill no memory', () => {
  const key = new TargetLoads().channel('x').key('a');
  for (let index = 0; index < 1000; index += 1) key.measured(`m${index}`, 100, index);
  expect(key.firstToken('m0', 1000)).toBeUndefined();
  expect(key.firstToken('m999', 1000)).toBeDefined();
});
