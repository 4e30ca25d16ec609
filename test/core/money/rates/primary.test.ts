import { describe, expect, test } from 'vitest';
import { PrimaryRates, RatesDesk } from '../../../../core/money/rates/primary.ts';
import { type RatesAnswer, type RatesLine } from '../../../../core/money/rates/index.ts';
import { newSubject, one, ratesSuite } from '../../../suites/rates-suite.ts';

const times = { minute: 1_200, lease: 600 };

/** A worker's way to a desk, that can be cut. */
class Line implements RatesLine {
  cut = false;
  readonly #desk: RatesDesk;
  readonly #worker: number;
  #listener: ((answer: RatesAnswer) => void) | undefined;

  constructor(desk: RatesDesk, worker: number) {
    this.#desk = desk;
    this.#worker = worker;
  }

  send(question: Parameters<RatesLine['send']>[0]): boolean {
    // As it goes between processes.
    const copy = JSON.parse(JSON.stringify(question)) as typeof question;
    setImmediate(() => {
      const answer = this.#desk.ask(this.#worker, copy);
      if (answer !== undefined && !this.cut) this.#listener?.(answer);
    });
    return true;
  }

  listen(listener: (answer: RatesAnswer) => void): void {
    this.#listener = listener;
  }
}

const quietly = (): void => {};

describe('rates that another process counts', () => {
  const desk = new RatesDesk(times);
  ratesSuite(() => new PrimaryRates(new Line(desk, 1), 'refuse', quietly, times));
});

test('workers share a limit, and the slots of one that has ended are free', async () => {
  const desk = new RatesDesk();
  const [here, there] = [1, 2].map((worker) => new PrimaryRates(new Line(desk, worker), 'refuse', quietly));
  const [subject, running] = [newSubject(), newSubject()];
  const slots = [{ subject: running, limit: 2 }];
  expect((await here!.take([one(subject, 10)], slots)).allowed).toBe(true);
  expect((await there!.take([one(subject, 10)], slots)).allowed).toBe(true);
  expect(await there!.take([one(subject, 10)], slots)).toMatchObject({ allowed: false, exceeded: running });
  desk.forget(1);
  const { states, allowed } = await there!.take([one(subject, 10)], slots);
  expect([allowed, states[0]?.remaining]).toEqual([true, 7]);
});

describe.each(['refuse', 'local'] as const)('while it does not answer (%s)', (whenDown) => {
  test('calls with limits are treated as the config says, and what came too late is given back', async () => {
    const desk = new RatesDesk();
    const line = new Line(desk, 1);
    const told: string[] = [];
    const rates = new PrimaryRates(line, whenDown, (error) =>
      told.push(error === undefined ? 'back' : 'gone'),
    );
    const subject = newSubject();
    const slots = [{ subject, limit: 1 }];
    line.cut = true;
    const verdict = await rates.take([], slots);
    expect(verdict).toMatchObject({ allowed: whenDown === 'local', degraded: true });
    expect(rates.state).toBe('degraded');
    line.cut = false;
    desk.forget(1);
    expect(await rates.take([], slots)).toMatchObject({ allowed: true });
    expect(rates.state).toBe('ok');
    expect(told).toEqual(['gone', 'back']);
  });
});

test('an answer that comes too late keeps no slot', async () => {
  const desk = new RatesDesk();
  const answers: RatesAnswer[] = [];
  let hear: ((answer: RatesAnswer) => void) | undefined;
  const rates = new PrimaryRates(
    {
      send(question) {
        const answer = desk.ask(1, question);
        if (answer !== undefined) answers.push(answer);
        return true;
      },
      listen: (listener) => {
        hear = listener;
      },
    },
    'refuse',
    quietly,
  );
  const slots = [{ subject: newSubject(), limit: 1 }];
  expect((await rates.take([], slots)).allowed).toBe(false);
  for (const answer of answers.splice(0)) hear?.(answer);
  const second = rates.take([], slots);
  for (const answer of answers.splice(0)) hear?.(answer);
  expect((await second).allowed).toBe(true);
});
