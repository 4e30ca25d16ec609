import { afterEach, expect, test, vi } from 'vitest';
import { openStores } from '../../../core/state/stores.ts';
import { Memory, storedRefusals } from '../../../plugins/learned-refusals/memory.ts';
import { eventually } from '../../support/eventually.ts';
import { keptLog } from '../../support/log.ts';

const hour = 3_600_000;
const defaults = { ttl: 24 * hour, perHour: 5, follow: 100 };
const closers: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closers.splice(0).toReversed()) await close();
});

function start(options: Partial<typeof defaults> = {}, stores = openStores('sqlite::memory:')) {
  const { log, lines } = keptLog();
  const memory = new Memory({ stores, log }, { ...defaults, ...options });
  closers.push(
    () => stores.close(),
    () => memory.stop(),
  );
  return { memory, stores, lines };
}

const paths = (memory: Memory, model = 'm'): readonly string[] =>
  memory.of('c', model).map(({ member }) => member.path);

test('a member is forgotten when its time is over', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { memory } = start({ ttl: hour });
  expect(memory.learn('c', 'm', { path: 'seed' })).toBe(true);
  vi.setSystemTime(Date.now() + hour / 2);
  memory.learn('c', 'm', { path: 'user' });
  vi.setSystemTime(Date.now() + hour / 2);
  expect(paths(memory)).toEqual(['user']);
  expect(memory.learn('c', 'm', { path: 'seed' })).toBe(true);
});

test('second attempts are counted by model and hour', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { memory } = start({ perHour: 2 });
  memory.count('c', 'm');
  vi.setSystemTime(Date.now() + hour / 2);
  expect(memory.mayLearn('c', 'm')).toBe(true);
  memory.count('c', 'm');
  expect(memory.mayLearn('c', 'm')).toBe(false);
  expect(memory.mayLearn('c', 'other')).toBe(true);
  vi.setSystemTime(Date.now() + hour / 2 + 1);
  expect(memory.mayLearn('c', 'm')).toBe(true);
});

test('all processes on one database have the second attempts of an hour together', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { memory, stores } = start({ perHour: 3 });
  const other = new Memory({ stores, log: keptLog().log }, { ...defaults, perHour: 3 });
  const claims = await Promise.all(
    [memory, other, memory, other, memory, other].map((one) => one.lock('c', 'm')),
  );
  expect(claims.filter((giveBack) => giveBack !== undefined)).toHaveLength(3);
  expect(await other.lock('c', 'another')).toBeDefined();
  // One that was not made is another's.
  claims.find((giveBack) => giveBack !== undefined)?.();
  await eventually(async () => expect(await other.lock('c', 'm')).toBeDefined());
  expect(await memory.lock('c', 'm')).toBeUndefined();
  vi.setSystemTime(Date.now() + hour + 1);
  expect(await memory.lock('c', 'm')).toBeDefined();
});

test('a process has its own second attempts while the database fails', async () => {
  const { memory, stores, lines } = start({ perHour: 1 });
  await stores.close();
  expect(await memory.lock('c', 'm')).toBeDefined();
  expect(lines).toMatchObject([{ level: 'error' }]);
  memory.count('c', 'm');
  expect(memory.mayLearn('c', 'm')).toBe(false);
});

test('members that are only suspected are kept for the hour of their attempts, eight of a model', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { memory } = start();
  memory.count('c', 'm');
  for (const path of ['seed', 'user', 'seed']) memory.suspect('c', 'm', [{ path }]);
  expect(memory.suspected('c', 'm')).toEqual([{ path: 'seed' }, { path: 'user' }]);
  expect(paths(memory)).toEqual([]);
  for (let index = 0; index < 9; index += 1) memory.suspect('c', 'm', [{ path: `x${index}` }]);
  expect(memory.suspected('c', 'm')).toHaveLength(8);
  vi.setSystemTime(Date.now() + hour + 1);
  memory.mayLearn('c', 'm');
  expect(memory.suspected('c', 'm')).toEqual([]);
  memory.suspect('c', 'm', [{ path: 'user' }]);
  memory.learn('c', 'm', { path: 'user' });
  expect(memory.suspected('c', 'm')).toEqual([]);
  for (let index = 0; index < 1001; index += 1) memory.suspect('c', `m${index}`, [{ path: 'seed' }]);
  expect(memory.suspected('c', 'm1000')).toEqual([]);
  expect(memory.suspected('c', 'm999')).toHaveLength(1);
});

test('eight members of a model, and a thousand models, are the most', () => {
  const { memory } = start();
  for (let index = 0; index < 9; index += 1) memory.learn('c', 'm', { path: `x${index}` });
  expect(paths(memory)).toHaveLength(8);
  expect(memory.mayLearn('c', 'm')).toBe(false);
  for (let index = 0; index < 999; index += 1) memory.learn('c', `m${index}`, { path: 'seed' });
  expect(memory.mayLearn('c', 'one more')).toBe(false);
  expect(memory.mayLearn('c', 'm0')).toBe(true);
  expect(memory.mayLearn('c', 'x'.repeat(300))).toBe(false);
});

test('attempts for a thousand models within an hour are the most', () => {
  const { memory } = start();
  for (let index = 0; index < 1000; index += 1) memory.count('c', `m${index}`);
  expect(memory.mayLearn('c', 'one more')).toBe(false);
  expect(memory.mayLearn('c', 'm0')).toBe(true);
});

test('what one process learns others read, with all that was said of it', async () => {
  const { memory, stores } = start();
  const member = { path: 'top_p', beside: 'temperature' };
  memory.learn('c', 'm', member);
  await eventually(async () => expect(await storedRefusals({ stores })).toMatchObject([{ member }]));
  memory.learn('c', 'm', { path: 'seed' });
  await eventually(async () => expect(await storedRefusals({ stores })).toHaveLength(2));
  const other = new Memory({ stores, log: keptLog().log }, defaults);
  closers.push(() => other.stop());
  other.follow();
  await eventually(() => expect(paths(other).toSorted()).toEqual(['seed', 'top_p']));
  const shared = other.of('c', 'm').find((one) => one.member.path === 'top_p');
  expect(shared).toMatchObject({ channel: 'c', model: 'm', member });
  expect(other.all()).toHaveLength(2);
});

test('a database that fails is told of once, and takes nothing from what this process knows', async () => {
  const { memory, stores, lines } = start();
  await stores.close();
  memory.learn('c', 'm', { path: 'seed' });
  memory.learn('c', 'm', { path: 'user' });
  memory.follow();
  await eventually(() =>
    expect(lines).toMatchObject([{ level: 'error', error: expect.anything() as unknown }]),
  );
  expect(paths(memory)).toEqual(['seed', 'user']);
});
