import { NEVER, of, Subject } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { sumOfCharges } from '../../../core/money/account/charge.ts';
import { EndedCalls } from '../../../core/money/account/ended-calls.ts';
import { accounted } from '../../../core/money/account/followed.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import { CallReservation } from '../../../core/money/account/call-reservation.ts';
import { ReplyMeter, type Used } from '../../../plugins/quota/reply-meter.ts';
import type { Bookkeeper, Reservation, Settlement } from '../../../core/money/ledger/index.ts';
import { chargedFor, priceFor } from '../../../core/money/ledger/pricing.ts';
import type { AttemptEvent, GatewayEvent } from '../../../core/model/event.ts';
import type { UsageRecord } from '../../../core/model/usage-record.ts';
import type { Call } from '../../../core/sdk/call.ts';
import type { Next } from '../../../core/sdk/define.ts';
import { testCall } from '../../support/call.ts';

const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const price = { model: 'm', input: 1, output: 1 };
const text: GatewayEvent = { type: 'text-delta', block: 0, choice: 0, text: 'Hello' };

/** Charges the same for every request that was sent. */
class FlatMeter extends ReplyMeter {
  readonly model = 'm';
  readonly answered: AttemptEvent | undefined = undefined;
  event(): void {}
  used(): Used {
    return { usage, parts: [usage] };
  }
}

/** A meter whose figures cannot be made. */
class BrokenMeter extends FlatMeter {
  override used(): Used {
    throw new Error('no figures');
  }
}

/** One call with an account, and what its bookkeeper was given. */
function opened({ recorded = true }: { readonly recorded?: boolean } = {}) {
  const { call, exchange } = testCall({ model: 'm', stream: true });
  const ended = new EndedCalls();
  const booked: Settlement[] = [];
  const released: string[] = [];
  const watched = new Set<string>();
  const reported: unknown[] = [];
  const bookkeeper = {
    enqueue: (settlement: Settlement) => void booked.push(settlement),
    release: (id: string) => void released.push(id),
    watch: ({ id }: Reservation) => {
      watched.add(id);
      return () => void watched.delete(id);
    },
  };
  const account = accountOf(call);
  if (recorded) account.recordWith(() => ({ id: call.id, keyId: 'key_1' }) as UsageRecord);
  const services = {
    bookkeeper,
    prices: { cost: () => ({ microDollars: 15, price }) },
    ended,
    report: (error: unknown) => void reported.push(error),
  };
  const claimed = (id: string): CallReservation => {
    const reservation = new CallReservation(bookkeeper as unknown as Bookkeeper);
    reservation.endWith(call);
    reservation.hold({ id, keyId: 'key_1', most: { microDollars: 100, tokens: 100 }, lease: 60_000 });
    return reservation;
  };
  const send = (pipeline: Next) => accounted(services, pipeline)(call);
  const end = (): void => {
    exchange.end();
    ended.flush();
  };
  return { call, account, booked, released, watched, reported, claimed, send, end };
}

/** What a reservation has become, and what was booked. */
function fate({ booked, released, watched }: ReturnType<typeof opened>) {
  return {
    settled: booked.map(({ reservation }) => reservation),
    charged: booked.map(({ charged }) => charged.microDollars),
    released,
    watched: [...watched],
  };
}

const metered =
  (reply: Next, reservation?: CallReservation): Next =>
  (call: Call) =>
    new FlatMeter(call, reservation).send(reply);

describe('a reservation is settled or released exactly once, and the call is charged once', () => {
  test('when the response is complete', async () => {
    const one = opened();
    const reply = await one.send(metered(async () => of(text), one.claimed('a')));
    reply.subscribe();
    one.end();
    one.end();
    expect(fate(one)).toEqual({ settled: ['a'], charged: [15], released: [], watched: [] });
  });

  test('when the response fails in its middle', async () => {
    const one = opened();
    const source = new Subject<GatewayEvent>();
    const reply = await one.send(metered(async () => source, one.claimed('a')));
    reply.subscribe({ error: () => {} });
    source.error(new Error('cut'));
    one.end();
    expect(fate(one)).toEqual({ settled: ['a'], charged: [15], released: [], watched: [] });
  });

  test('when the client leaves before there is a response', () => {
    const one = opened();
    void one.send(metered(() => new Promise(() => {}), one.claimed('a')));
    one.end();
    expect(fate(one)).toEqual({ settled: ['a'], charged: [15], released: [], watched: [] });
  });

  test('when the client leaves, although nobody lets go of the response', async () => {
    const one = opened();
    const reply = await one.send(metered(async () => NEVER, one.claimed('a')));
    const reading = reply.subscribe();
    one.end();
    reading.unsubscribe();
    expect(fate(one)).toEqual({ settled: ['a'], charged: [15], released: [], watched: [] });
  });

  test('when no provider answers', async () => {
    const one = opened();
    await expect(one.send(metered(() => Promise.reject(new Error('no')), one.claimed('a')))).rejects.toThrow(
      'no',
    );
    one.end();
    expect(fate(one)).toEqual({ settled: [undefined], charged: [0], released: ['a'], watched: [] });
  });

  test('when the call is refused before it is sent', async () => {
    const one = opened();
    one.claimed('a');
    await expect(one.send(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    one.end();
    expect(fate(one)).toEqual({ settled: [undefined], charged: [0], released: ['a'], watched: [] });
  });

  test('when the call has ended before it is sent', () => {
    const one = opened();
    const reservation = one.claimed('a');
    one.end();
    expect(() => new FlatMeter(one.call, reservation)).toThrow('The client left');
    expect(() => one.claimed('b')).toThrow('The client left');
    expect(fate(one)).toEqual({ settled: [], charged: [], released: ['a'], watched: [] });
  });

  test('when a plugin sends two requests: the sum is charged with one of the reservations', async () => {
    const one = opened();
    for (const id of ['a', 'b']) {
      // oxlint-disable-next-line no-await-in-loop
      const reply = await one.send(metered(async () => of(text), one.claimed(id)));
      reply.subscribe();
    }
    one.end();
    expect(fate(one)).toEqual({ settled: ['b'], charged: [30], released: ['a'], watched: [] });
  });

  const ample = { microDollars: 5_000, tokens: 9_000 };
  test.each([
    ['the later one', ample, ample, 'b'],
    ['the earlier one, where the later has too few tokens', ample, { ...ample, tokens: 5_000 }, 'a'],
    ['the earlier one, where the later has too little money', ample, { ...ample, microDollars: 1_000 }, 'a'],
    ['the later one, where the earlier has too few tokens', { ...ample, tokens: 100 }, ample, 'b'],
    ['the later one, where the earlier has more money', { microDollars: 90_000, tokens: 100 }, ample, 'b'],
  ])(
    'when there are two charges, by a reservation that covers both: %s',
    async (_which, first, second, id) => {
      const one = opened();
      await one.send(async () => NEVER);
      const held = (name: string, most: typeof ample) => ({ id: name, most, unwatch: () => {} });
      one.account.charge({ amounts: { microDollars: 900, tokens: 100 }, reservation: held('a', first) });
      one.account.charge({ amounts: { microDollars: 1_000, tokens: 5_000 }, reservation: held('b', second) });
      one.end();
      expect(one.booked).toMatchObject([
        { reservation: id, charged: { microDollars: 1_900, tokens: 5_100 } },
      ]);
      expect(one.released).toEqual([id === 'a' ? 'b' : 'a']);
    },
  );

  test('when its figures cannot be made', async () => {
    const one = opened();
    const reservation = one.claimed('a');
    const reply = await one.send((call) => new BrokenMeter(call, reservation).send(async () => of(text)));
    reply.subscribe();
    one.end();
    expect(fate(one)).toEqual({ settled: [undefined], charged: [0], released: ['a'], watched: [] });
  });

  test('when nobody records the call', async () => {
    const one = opened({ recorded: false });
    const reply = await one.send(metered(async () => of(text), one.claimed('a')));
    reply.subscribe();
    one.end();
    expect(fate(one)).toEqual({ settled: [], charged: [], released: ['a'], watched: [] });
  });

  test('when its record cannot be made', async () => {
    const one = opened();
    one.account.recordWith(() => {
      throw new Error('no record');
    });
    const reply = await one.send(metered(async () => of(text), one.claimed('a')));
    reply.subscribe();
    one.end();
    expect(fate(one)).toEqual({ settled: [], charged: [], released: ['a'], watched: [] });
    expect(one.reported).toEqual([new Error('no record')]);
  });

  test('when its settlement is taken, and nothing is booked then', async () => {
    const one = opened();
    const reply = await one.send(metered(async () => of(text), one.claimed('a')));
    reply.subscribe();
    one.account.belongTo({
      owners: ['team_1', 'usr_1'],
      series: ['key_1', 'usr_1'].map((holder) => ({ holder, series: 'hours:5' })),
    });
    const taken = one.account.take();
    expect(taken).toMatchObject({ reservation: 'a', charged: { microDollars: 15 } });
    expect(taken?.owners).toEqual(['team_1', 'usr_1']);
    expect(taken?.series?.map(({ holder }) => holder)).toEqual(['key_1', 'usr_1']);
    expect(one.account.take()).toBeUndefined();
    one.end();
    expect(fate(one)).toEqual({ settled: [], charged: [], released: [], watched: [] });
  });

  test('when it is charged after its account was closed, which is reported', () => {
    const one = opened();
    void one.send(() => new Promise(() => {}));
    one.end();
    one.account.charge({
      amounts: { microDollars: 1, tokens: 1 },
      reservation: { id: 'late', most: { microDollars: 1, tokens: 1 }, unwatch: () => {} },
    });
    expect(one.released).toEqual(['late']);
    expect(one.reported).toHaveLength(1);
  });
});

describe('callbacks', () => {
  test('see final figures, whenever they were asked for', async () => {
    const one = opened();
    const seen: unknown[] = [];
    one.account.onClose(() => seen.push(one.account.charged?.amounts.microDollars));
    one.call.onOutcome(({ cost }) => seen.push(cost?.microDollars));
    one.call.onEnd(() => one.account.charge({ amounts: { microDollars: 7, tokens: 1 }, usage, price }));
    void one.send(metered(() => new Promise(() => {})));
    one.end();
    expect(seen).toEqual([22, 22]);
  });

  test('run once each, and one that fails keeps no other from running', () => {
    const one = opened();
    const ran: string[] = [];
    one.account.onClose(() => {
      throw new Error('first');
    });
    one.account.onClose(() => ran.push('close'));
    one.call.onOutcome(() => {
      throw new Error('second');
    });
    one.call.onOutcome(() => ran.push('outcome'));
    void one.send(() => new Promise(() => {}));
    one.end();
    one.end();
    expect(ran).toEqual(['close', 'outcome']);
    expect(one.reported).toEqual([new Error('first'), new Error('second')]);
    expect(one.booked).toHaveLength(1);
  });

  test('that are asked for after the end run all the same', () => {
    const one = opened();
    const ran: string[] = [];
    void one.send(() => new Promise(() => {}));
    one.end();
    one.account.onClose(() => ran.push('close'));
    one.call.onOutcome(({ ended }) => ran.push(ended));
    one.end();
    expect(ran).toEqual(['close', 'left']);
  });
});

test('a share of a price row, as for a cached response, is one of its services, too', () => {
  const services = { 'web-search': 0.01 };
  const own = priceFor({ models: [{ model: 'm', price: { input: 2, output: 4, services } }] }, 'm');
  const used = { ...usage, units: { services: { 'web-search': 1 } } };
  const charged = (share: number) =>
    chargedFor(own, { microDollars: 1, tokens: 15 }, [{ usage: used }], share).microDollars;
  expect([1, 0.1, 0].map(charged)).toEqual([10_040, 1_004, 0]);
});

test('charges that differ from their costs, and together do not, have the cost of both', () => {
  const charge = (microDollars: number, cost: number) => ({ amounts: { microDollars, tokens: 1 }, cost });
  expect(sumOfCharges(charge(20, 10), charge(10, 20))).toEqual({ amounts: { microDollars: 30, tokens: 2 } });
  expect(sumOfCharges(charge(20, 10), charge(10, 5))).toEqual({
    amounts: { microDollars: 30, tokens: 2 },
    cost: 15,
  });
});
