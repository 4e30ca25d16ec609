/** A key with a budget by rolling hours or by days of a time zone and with a price rule, over bursts of calls with hours between them. */
import { startBookkeeper } from '../../core/money/ledger/bookkeeper.ts';
import { factorFor, multiplied } from '../../core/money/ledger/pricing.ts';
import { BudgetExhausted } from '../../core/money/ledger/periods.ts';
import { seriesIn } from '../../core/money/ledger/windows.ts';
import { withOwners } from '../../core/money/ledger/with-owners.ts';
import type { Bookkeeper, Ledger } from '../../core/money/ledger/index.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import type { Budget, PriceRule } from '../../core/sdk/budget.ts';
import { MemoryDatabase } from './database.ts';
import { Chance, ProcessClock, startOfTime, Timeline } from './time.ts';
import { BrokenRule, type Outcome } from './world.ts';

const hour = 3_600_000;

/** Local days of Berlin around the one of 25 hours, of which the ends are written down here and not computed. */
const berlinDays = [
  Date.UTC(2026, 9, 23, 22),
  Date.UTC(2026, 9, 24, 22),
  Date.UTC(2026, 9, 25, 23),
  Date.UTC(2026, 9, 26, 23),
  Date.UTC(2026, 9, 27, 23),
];

interface Made {
  readonly at: number;
  /** Reserved amount of the call, or its charge once it has ended. */
  amount: number;
  readonly most: number;
  endedAt: number | undefined;
}

/** One world, from its seed. */
export class WindowsWorld {
  readonly #chance: Chance;
  readonly #time = new Timeline();
  readonly #clock: ProcessClock;
  readonly #database: MemoryDatabase;
  readonly #bookkeeper: Bookkeeper;
  readonly #budget: Budget;
  readonly #pricing: PriceRule = { factor: 1.2, models: [{ model: 'free-*', factor: 0 }] };
  readonly #made: Made[] = [];
  #refused = 0;
  #reservations = 0;
  #broken: unknown;

  constructor(seed: number) {
    const chance = (this.#chance = new Chance(seed));
    // The local day of Berlin that ends at 23:00 of UTC has begun 25 hours before.
    const begin =
      chance.of([Date.UTC(2026, 9, 24, 19), Date.UTC(2026, 9, 25, 19)]) + chance.whole(0, 3 * hour);
    const clock = (this.#clock = new ProcessClock(this.#time, 1, begin - startOfTime));
    const database = (this.#database = new MemoryDatabase(() => clock.wall()));
    const amount = chance.of([3_000, 20_000, 100_000]);
    this.#budget = chance.is(0.6)
      ? { unit: 'micro-dollar', period: 'hours', hours: 1, amount }
      : { unit: 'micro-dollar', period: 'day', timeZone: 'Europe/Berlin', amount };
    const direct: Ledger = {
      reserve: async (keyId, budgets, most, lease = 60_000, less = undefined, ahead = undefined) => {
        const amounts = { most, ...(less && { less }), ...(ahead && { ahead }) };
        const outcome = database.reserve(keyId, budgets, amounts, lease, clock.wall());
        if (outcome instanceof BudgetExhausted) throw outcome;
        this.#reservations += 1;
        return outcome;
      },
      settle: async (settlements) => {
        database.settle(settlements, clock.wall());
        this.#checkStanding();
      },
      settleAfter: () => Promise.reject(new Error('Nothing is settled here together with something else.')),
      release: async (ids) => database.release(ids),
      giveBack: async (returns) => database.giveBack(returns),
      recalled: async () => database.recalled(),
      renew: async (reservations) => database.renew(reservations, clock.wall()),
      sweep: async () => database.sweep(),
      states: async (keyId, budgets) => database.states(keyId, budgets, clock.wall()),
    };
    const key = { id: 'key', budgets: [this.#budget], pricing: this.#pricing, owners: [] };
    const ledger = withOwners(direct, async () => key as unknown as ApiKey);
    this.#bookkeeper = startBookkeeper(ledger, () => {}, { clock });
  }

  async run(): Promise<Outcome> {
    const budgets = [this.#budget];
    const check = (): void => {
      if (this.#broken !== undefined) throw this.#broken;
    };
    for (let burst = this.#chance.whole(10, 25); burst > 0; burst -= 1) {
      for (let calls = this.#chance.whole(1, 8); calls > 0; calls -= 1)
        this.#time.after(this.#chance.whole(0, 900), () => {
          void this.#call(budgets).catch((error: unknown) => (this.#broken ??= error));
        });
      // oxlint-disable-next-line no-await-in-loop -- one burst after the other
      await this.#time.runUntil(this.#time.now + 2_500, check);
      this.#clock.skew += this.#chance.is(0.5)
        ? this.#chance.whole(20_000, 4 * 60_000)
        : this.#chance.whole(hour / 4, 1.5 * hour);
    }
    // oxlint-disable-next-line no-await-in-loop -- as above
    for (let busy = this.#chance.of([0, 0, 0, 1]); busy > 0; busy -= 1) await this.#beBusy(budgets, check);
    const [state] = this.#database.states('key', budgets, this.#clock.wall());
    const expected = this.#spentAt(this.#clock.wall(), 60_000);
    const least = this.#spentAt(this.#clock.wall());
    if (
      state === undefined ||
      state.spent > expected ||
      state.spent < least ||
      state.reserved + state.ahead > 0
    )
      throw new BrokenRule(`${state?.spent} are counted, and calls were charged ${expected}`);
    return {
      calls: this.#made.length,
      refused: this.#refused,
      fromMemory: this.#made.length - this.#reservations,
    };
  }

  /**
   * Calls come for longer than a part of the window lasts, so that what was reserved ahead in one part might be used in the next. Then come large
   * ones, when the first part has just left the window, or in the new day.
   */
  async #beBusy(budgets: readonly Budget[], check: () => void): Promise<void> {
    const clock = this.#clock;
    const isRolling = this.#budget.period === 'hours';
    const dayEnd = berlinDays.find((start) => start > clock.wall() + 60_000) ?? 0;
    // What was spent before is forgotten, or the day ends.
    if (isRolling) clock.skew += 2 * hour;
    else if (dayEnd > 0) clock.skew += dayEnd - 30_000 - clock.wall();
    const begun = clock.wall();
    for (let at = 0; at < 120_000; at += 500)
      this.#time.after(at, () => {
        void this.#call(budgets, 400).catch((error: unknown) => (this.#broken ??= error));
      });
    await this.#time.runUntil(this.#time.now + 123_000, check);
    if (isRolling) clock.skew += begun + hour + this.#chance.whole(60_000, 110_000) - clock.wall();
    for (let calls = 20; calls > 0; calls -= 1)
      this.#time.after(this.#chance.whole(0, 5_000), () => {
        void this.#call(budgets).catch((error: unknown) => (this.#broken ??= error));
      });
    await this.#time.runUntil(this.#time.now + 8_000, check);
  }

  /** `parts`: how many of the largest such calls fit into the budget. */
  async #call(budgets: readonly Budget[], parts = this.#chance.of([2, 8, 40])): Promise<void> {
    const chance = this.#chance;
    const { amount } = this.#budget;
    const left = chance.is(0.05) ? this.#left() : 0;
    const cost = left > 0 ? left : chance.whole(1, Math.max(1, Math.floor(amount / parts)));
    const most = Math.ceil((cost * 12) / 10);
    const mayShare = chance.is(0.7);
    const at = this.#clock.wall();
    let reservation;
    try {
      const amounts = multiplied({ microDollars: cost, tokens: 1 }, factorFor(this.#pricing, 'm'));
      reservation = await this.#bookkeeper.reserve('key', budgets, amounts, 60_000, undefined, mayShare);
    } catch (error) {
      if (!(error instanceof BudgetExhausted)) throw error;
      this.#refused += 1;
      // Whole parts of a rolling window count, and calls that have just ended hold all that was reserved for them.
      if (this.#spentAt(this.#clock.wall(), 60_000, 2_500) + most <= amount)
        throw new BrokenRule(`a call for ${most} was refused, though there was room for it`);
      return;
    }
    const made: Made = { at, amount: most, most, endedAt: undefined };
    this.#made.push(made);
    const exposure = this.#spentAt(this.#clock.wall());
    if (exposure > amount) throw new BrokenRule(`calls of one period may come to ${exposure} of ${amount}`);
    const unwatch = this.#bookkeeper.watch(reservation);
    this.#clock.after(chance.whole(1, 400), () => {
      unwatch();
      const used = Math.floor(cost * chance.of([0.1, 0.6, 1]));
      made.amount = Math.ceil((used * 12) / 10);
      made.endedAt = this.#clock.now();
      const charged = { microDollars: used, tokens: 1 };
      const record = {
        id: `req_${this.#made.indexOf(made)}`,
        at,
        keyId: 'key',
        ip: '',
        operation: 'chat',
        format: 'plain',
        model: 'm',
        stream: false,
        status: 200,
        ended: 'complete' as const,
        input: 1,
        output: 0,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        microDollars: used,
        ms: 1,
      };
      // Calls settle with their owners and price; what comes later, such as batches, finds them.
      this.#bookkeeper.enqueue(
        chance.is(0.7)
          ? {
              keyId: 'key',
              owners: [],
              series: seriesIn('key', budgets),
              reservation: reservation.id,
              charged: multiplied(charged, factorFor(this.#pricing, 'm')),
              record,
            }
          : { keyId: 'key', reservation: reservation.id, charged, record },
      );
    });
  }

  /** Checks that spent and reserved amounts never exceed the budget, even when an allotment keeps more than its calls leave unused. */
  #checkStanding(): void {
    const [state] = this.#database.states('key', [this.#budget], this.#clock.wall());
    const { amount = 0, spent = 0, reserved = 0, ahead = 0 } = state ?? {};
    if (spent + reserved + ahead > amount)
      this.#broken ??= new BrokenRule(`${spent + reserved + ahead} of ${amount} are spent and reserved`);
  }

  /** The largest cost for which there is room beside what is reserved ahead. */
  #left(): number {
    const [state] = this.#database.states('key', [this.#budget], this.#clock.wall());
    const { amount = 0, spent = 0, reserved = 0, ahead = 0 } = state ?? {};
    return Math.floor((amount - spent - reserved - ahead) / 1.2);
  }

  /** Returns the charged and reserved amounts of the current period. `more`: time added to a window; `lag`: time for which ended calls keep their reservations. */
  #spentAt(now: number, more = 0, lag = 0): number {
    const since =
      this.#budget.period === 'hours'
        ? now - hour - more
        : (berlinDays.findLast((start) => start <= now) ?? 0);
    return this.#made
      .filter(({ at }) => (more > 0 || this.#budget.period !== 'hours' ? at >= since : at > since))
      .reduce(
        (sum, { amount, most, endedAt }) =>
          sum + (endedAt !== undefined && this.#clock.now() - endedAt < lag ? most : amount),
        0,
      );
  }
}
