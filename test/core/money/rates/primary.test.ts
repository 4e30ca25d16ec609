import { describe, expect, test } from 'vitest';
import { RatesServer } from '../../../../core/money/rates/server.ts';
import { PrimaryRates } from '../../../../core/money/rates/primary.ts';
import type {
  RateRule,
  Rates,
  RatesAnswer,
  RatesLine,
  RatesQuestion,
  RatesRecall,
  RateTimes,
  RateVerdict,
  SlotRule,
} from '../../../../core/money/rates/index.ts';
import { newSubject, one, ratesSuite } from '../../../suites/rates-suite.ts';

const times = { minute: 1_200, lease: 600 };

type News = RatesAnswer | RatesRecall;

/** The process that counts, with the ways of its workers, which can be cut. */
class Office {
  readonly cut = new Set<number>();
  readonly questions: RatesQuestion[] = [];
  readonly server: RatesServer;
  readonly #listeners = new Map<number, (news: News) => void>();

  constructor(lengths: RateTimes = {}) {
    this.server = new RatesServer((worker, news) => {
      if (!this.cut.has(worker)) setImmediate(() => this.#listeners.get(worker)?.(news));
    }, lengths);
  }

  line(worker: number): RatesLine {
    return {
      send: (question) => {
        this.questions.push(question);
        // As it goes between processes.
        const copy = JSON.parse(JSON.stringify(question)) as typeof question;
        setImmediate(() => this.server.receive(worker, copy));
        return true;
      },
      listen: (listener) => void this.#listeners.set(worker, listener),
    };
  }
}

const quietly = (): void => {};

describe('rates that another process counts', () => {
  const office = new Office(times);
  ratesSuite(() => new PrimaryRates(office.line(1), 'refuse', quietly, times));
});

test('workers share a limit, and the slots of one that has ended are free', async () => {
  const office = new Office();
  const [here, there] = [1, 2].map((worker) => new PrimaryRates(office.line(worker), 'refuse', quietly));
  const [subject, running] = [newSubject(), newSubject()];
  const slots = [{ subject: running, limit: 2 }];
  expect((await here!.take([one(subject, 10)], slots)).allowed).toBe(true);
  expect((await there!.take([one(subject, 10)], slots)).allowed).toBe(true);
  expect(await there!.take([one(subject, 10)], slots)).toMatchObject({ allowed: false, exceeded: running });
  office.server.forget(1);
  const { states, allowed } = await there!.take([one(subject, 10)], slots);
  expect([allowed, states[0]?.remaining]).toEqual([true, 7]);
});

describe.each(['refuse', 'local'] as const)('while it does not answer (%s)', (whenDown) => {
  test('calls with limits are treated as the config says, and what came too late is given back', async () => {
    const office = new Office();
    const changes: string[] = [];
    const rates = new PrimaryRates(office.line(1), whenDown, (error) =>
      changes.push(error === undefined ? 'back' : 'gone'),
    );
    const subject = newSubject();
    const slots = [{ subject, limit: 1 }];
    office.cut.add(1);
    const verdict = await rates.take([], slots);
    expect(verdict).toMatchObject({ allowed: whenDown === 'local', degraded: true });
    expect(rates.state).toBe('degraded');
    office.cut.delete(1);
    office.server.forget(1);
    expect(await rates.take([], slots)).toMatchObject({ allowed: true });
    expect(rates.state).toBe('ok');
    expect(changes).toEqual(['gone', 'back']);
  });
});

test('an answer that comes too late keeps no slot', async () => {
  const answers: News[] = [];
  const server = new RatesServer((_worker, answer) => answers.push(answer));
  let deliver: ((news: News) => void) | undefined;
  const rates = new PrimaryRates(
    {
      send(question) {
        server.receive(1, question);
        return true;
      },
      listen: (listener) => {
        deliver = listener;
      },
    },
    'refuse',
    quietly,
  );
  const slots = [{ subject: newSubject(), limit: 1 }];
  expect((await rates.take([], slots)).allowed).toBe(false);
  for (const answer of answers.splice(0)) deliver?.(answer);
  const second = rates.take([], slots);
  for (const answer of answers.splice(0)) deliver?.(answer);
  expect((await second).allowed).toBe(true);
});

describe('a busy key', () => {
  /** No slice ends during a test, however slow the machine is. */
  const long = { minute: 36_000_000 };
  const many = async (
    rates: Rates,
    calls: number,
    rules: readonly RateRule[],
    slots: readonly SlotRule[],
  ) => {
    const verdicts: RateVerdict[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one call after the other
    for (let call = 0; call < calls; call += 1) verdicts.push(await rates.take(rules, slots));
    return verdicts;
  };

  test('is served from what was counted ahead, and told what is left of its limits', async () => {
    const office = new Office(long);
    const rates = new PrimaryRates(office.line(1), 'refuse', quietly, long);
    const rules = [one(newSubject(), 100_000), { subject: newSubject(), limit: 10_000_000, cost: 100 }];
    const slots = [{ subject: newSubject(), limit: 10_000 }];
    const verdicts = await many(rates, 500, rules, slots);
    expect(verdicts.every(({ allowed }) => allowed)).toBe(true);
    const left = verdicts.map(({ states }) => states[0]?.remaining);
    expect(left).toEqual(Array.from({ length: 500 }, (_, call) => 100_000 - call - 1));
    expect(office.questions.filter(({ kind }) => kind === 'take').length).toBeLessThan(100);
    for (const { grant } of verdicts) grant?.release();
    await rates.close();
  });

  test('whose calls come at once makes one request for all of them', async () => {
    const office = new Office(long);
    const rates = new PrimaryRates(office.line(1), 'refuse', quietly, long);
    const rules = [one(newSubject(), 100_000), { subject: newSubject(), limit: 10_000_000, cost: 100 }];
    const requests = (): number => office.questions.filter(({ kind }) => kind === 'take').length;
    await many(rates, 200, rules, []);
    const before = requests();
    const verdicts: RateVerdict[] = [];
    // Until calls use up the share that is left.
    while (requests() === before) {
      // oxlint-disable-next-line no-await-in-loop -- one burst after the other
      verdicts.push(...(await Promise.all(Array.from({ length: 40 }, () => rates.take(rules)))));
    }
    expect(verdicts.every(({ allowed }) => allowed)).toBe(true);
    expect(requests()).toBe(before + 1);
    await rates.close();
  });

  test('of one worker leaves all that it does not use to the others', async () => {
    const office = new Office(long);
    const [here, there] = [1, 2].map(
      (worker) => new PrimaryRates(office.line(worker), 'refuse', quietly, long),
    );
    const [requests, running] = [one(newSubject(), 400), { subject: newSubject(), limit: 300 }];
    const first = await many(here!, 20, [requests], [running]);
    expect(first.every(({ allowed }) => allowed)).toBe(true);
    const others = await many(there!, 280, [requests], [running]);
    expect(others.filter(({ allowed }) => allowed)).toHaveLength(280);
    expect(await there!.take([requests], [running])).toMatchObject({
      allowed: false,
      exceeded: running.subject,
    });
    first[0]?.grant?.release();
    await new Promise(setImmediate);
    expect(await there!.take([requests], [running])).toMatchObject({ allowed: true });
    expect(await here!.take([requests], [running])).toMatchObject({ allowed: false });
  });
});
