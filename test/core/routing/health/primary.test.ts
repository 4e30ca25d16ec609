import { afterEach, describe, expect, test } from 'vitest';
import { createHealth } from '../../../../core/routing/health/index.ts';
import { type Health } from '../../../../core/sdk/health.ts';
import {
  HealthServer,
  primarySharing,
  type HealthLine,
  type HealthNews,
  type HealthWord,
} from '../../../../core/routing/health/primary.ts';
import type { HealthSettings } from '../../../../core/settings/routing.ts';
import {
  enter,
  errors,
  fail,
  healthSuite,
  newTarget,
  settingsOf,
  sharedHealthSuite,
} from '../../../suites/health-suite.ts';

/** As it goes between processes. */
const copied = <Message>(message: Message): Message => JSON.parse(JSON.stringify(message)) as Message;

/** A worker's way to a server, that can be cut, or hang. */
class Line implements HealthLine {
  cut = false;
  readonly words: HealthWord[] = [];
  readonly #server: HealthServer;
  readonly #worker: number;
  #listener: ((news: HealthNews) => void) | undefined;
  /** Messages that wait while the primary process hangs. */
  #held: (() => void)[] | undefined;

  constructor(server: HealthServer, number: number) {
    this.#server = server;
    this.#worker = number;
  }

  send(word: HealthWord): boolean {
    if (this.cut) return false;
    this.words.push(word);
    const send = (news: HealthNews): void => {
      setImmediate(() => this.#listener?.(copied(news)));
    };
    const deliver = (): void => {
      setImmediate(() => this.#server.receive(this.#worker, copied(word), send));
    };
    if (this.#held === undefined) deliver();
    else this.#held.push(deliver);
    return true;
  }

  listen(listener: (news: HealthNews) => void): void {
    this.#listener = listener;
  }

  hang(): void {
    this.#held = [];
  }

  goOn(): void {
    for (const deliver of this.#held ?? []) deliver();
    this.#held = undefined;
  }
}

const opened: Health[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((health) => health.close()));
});

let workers = 0;

function worker(
  server: HealthServer,
  settings: Partial<HealthSettings> = {},
  now?: () => number,
): { readonly health: Health; readonly line: Line; readonly number: number } {
  const number = (workers += 1);
  const line = new Line(server, number);
  const health = createHealth(settingsOf(settings), {
    share: primarySharing(line),
    ...(now === undefined ? {} : { now }),
  });
  opened.push(health);
  return { health, line, number };
}
const pass = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

describe('health that workers share', () => {
  const server = new HealthServer();
  healthSuite((settings, clock) => worker(server, settings, () => clock.now).health);
  sharedHealthSuite((count, settings) => {
    const own = new HealthServer();
    return Promise.resolve(Array.from({ length: count }, () => worker(own, settings).health));
  });
});

test('a worker that starts later knows what holds by then, and nothing that is over', async () => {
  let now = 0;
  const server = new HealthServer(() => now);
  const { health: early } = worker(server);
  const [refused, limited, over] = [newTarget(), newTarget(), newTarget()];
  enter(early, refused).failed(errors.refused());
  enter(early, limited).failed(errors.limited(60));
  enter(early, over).failed(errors.limited(10));
  const { health: second } = worker(server);
  await expect.poll(() => second.standing(over)).toBe('cooling');
  now += 20_000;
  const { health: late } = worker(server);
  await expect.poll(() => late.standing(refused)).toBe('resting');
  await expect.poll(() => late.standing(limited)).toBe('cooling');
  expect(late.waitMs(limited)).toBeLessThanOrEqual(40_000);
  // A key that was refused rests for a minute, give or take a fifth.
  expect(late.waitMs(refused)).toBeGreaterThan(20_000);
  expect(late.waitMs(refused)).toBeLessThanOrEqual(52_000);
  expect(late.standing(over)).toBe('up');
  expect(late.report().some(({ channel }) => channel === over.channel.id)).toBe(false);
});

test('one worker at a time finds out; the turn of one that ends is free', async () => {
  const server = new HealthServer();
  const all = [1, 2, 3].map(() => worker(server, { rest: 300 }));
  const target = newTarget();
  fail(all[0]!.health, target);
  for (const { health } of all) await expect.poll(() => health.standing(target)).toBe('resting');
  const probing: number[] = [];
  const round = async (): Promise<void> => {
    for (const { health, number } of all)
      if (health.waitMs(target) === 0 && health.enter(target) !== undefined) probing.push(number);
    await pass(10);
  };
  const begun = performance.now();
  while (performance.now() - begun < 2_000) await round();
  expect(probing).toHaveLength(1);
  server.forget(probing[0] ?? 0);
  const others = all.filter(({ number }) => number !== probing[0]);
  // Those who were told to wait learn of it when that time has passed, or when somebody asks.
  expect(await acquireLease(others[0]!.line, target.channel.id)).toBe(0);
  expect(await acquireLease(others[1]!.line, target.channel.id)).toBeGreaterThan(0);
});

/** Requests a probe lease. Resolves to the milliseconds until it is free, 0 when it was granted. */
function acquireLease(line: Line, channel: string): Promise<number> {
  return new Promise((resolve) => {
    line.listen((news) => {
      if (news.kind === 'turn' && news.id === -1) resolve(news.wait);
    });
    line.send({ kind: 'claim', id: -1, name: { channel, key: 'first' }, lease: 5_000 });
  });
}

test('a storm of changes is few messages, and the last word arrives', async () => {
  const server = new HealthServer();
  const [one, two] = [worker(server), worker(server)];
  const target = newTarget();
  for (let count = 1; count <= 2_000; count += 1) {
    one.health.enter(target)?.failed(errors.limited(count % 60));
    one.health.reset(target.channel.id);
    if (count % 100 === 0) await pass(1);
  }
  enter(one.health, target).failed(errors.limited(60));
  await expect.poll(() => two.health.waitMs(target)).toBeGreaterThan(50_000);
  expect(one.line.words.length).toBeLessThan(100);
});

test('while nobody answers each worker goes on with what it knows; then all is shared again', async () => {
  const server = new HealthServer();
  const [one, two] = [worker(server, { rest: 300 }), worker(server, { rest: 300 })];
  const [before, during] = [newTarget(), newTarget()];
  fail(one.health, before);
  await expect.poll(() => two.health.standing(before)).toBe('resting');
  one.line.hang();
  await expect.poll(() => one.health.waitMs(before)).toBeLessThanOrEqual(50);
  // Whose turn it is nobody says: after a second it is taken for gone, and calls go on.
  await expect.poll(() => [one.health.waitMs(before), one.health.sharing]).toEqual([0, 'degraded']);
  fail(one.health, during);
  expect(two.health.standing(during)).toBe('up');
  one.line.goOn();
  await expect.poll(() => one.health.sharing).toBe('ok');
  await expect.poll(() => two.health.standing(during)).toBe('resting');
  one.line.cut = true;
  enter(one.health, newTarget()).failed(errors.refused());
  await expect.poll(() => one.health.sharing).toBe('degraded');
});

test('what is remembered for all is bounded', async () => {
  const server = new HealthServer();
  const replies: number[] = [];
  for (let count = 0; count < 7_000; count += 1)
    server.receive(
      1,
      {
        kind: 'tell',
        places: [{ name: { channel: `c${count}`, key: 'first' }, cool: 60_000, rest: 0, rests: 0, base: 0 }],
      },
      () => {},
    );
  server.receive(2, { kind: 'join' }, (news) => {
    if (news.kind === 'heard') replies.push(news.places.length);
  });
  expect(replies).toEqual([5_000]);
});
