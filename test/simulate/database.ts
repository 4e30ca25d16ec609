import type { HeldBudget } from '../../core/sdk/budget.ts';
import type { Amounts } from '../../core/model/usage-record.ts';
import { none, smaller } from '../../core/money/ledger/amounts.ts';
import {
  BudgetExhausted,
  firstThatFits,
  holderOf,
  periodStart,
  reservationOf,
  reservedAt,
  shortOf,
} from '../../core/money/ledger/periods.ts';
import { chargesOf, drawsOf, statesOf, type StandingRow } from '../../core/money/ledger/sql.ts';
import { windowsOf, type Window } from '../../core/money/ledger/windows.ts';
import type {
  AllotmentReturns,
  BudgetState,
  Reservation,
  Settlement,
} from '../../core/money/ledger/index.ts';

/** A reservation as the database has it, on the budgets of one holder: a key, or an owner of it. */
export interface Row {
  readonly id: string;
  readonly holder: string;
  microDollars: number;
  tokens: number;
  /** Amounts of the allotment that no call uses. */
  free: Amounts;
  readonly day: number;
  readonly month: number;
  readonly made: number;
  readonly lease: number;
  expires: number;
  /** 1: an allotment, 2: one that was recalled. */
  allotment: number;
}

/** The ledger's tables in memory. Each method is one transaction, and does what the statements of the real ledgers do. */
export class MemoryDatabase {
  /** The rows of each reservation, that of its key first. */
  readonly #rows = new Map<string, readonly Row[]>();
  /** The same rows by their holders. */
  readonly #byHolder = new Map<string, Set<Row>>();
  readonly records = new Set<string>();
  /** Ids of reservations that were made anew for calls that go on, or that had just ended, whether or not there was room. */
  readonly remade = new Set<string>();
  readonly #spent = new Map<string, { microDollars: number; tokens: number }>();
  readonly #starts = new PeriodStarts();
  /** Milliseconds since 1970. */
  readonly #wall: () => number;

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** `now`: the time of day of the process that asks, which decides about periods. */
  reserve(
    keyId: string,
    budgets: readonly HeldBudget[],
    {
      most,
      less,
      ahead: wanted,
    }: { readonly most: Amounts; readonly less?: Amounts; readonly ahead?: Amounts },
    lease: number,
    now: number,
  ): Reservation | BudgetExhausted {
    const states = this.states(keyId, budgets, now);
    const fitting = firstThatFits(states, less === undefined ? [most] : [most, less], now);
    const short = new Set(fitting === most ? [] : shortOf(states, most, keyId));
    for (const holder of short)
      for (const row of this.#live(holder)) {
        if (row.allotment === 1) row.allotment = 2;
        if (row.allotment === 2 && fitting instanceof BudgetExhausted) fitting.recalls = true;
      }
    if (fitting instanceof BudgetExhausted) return fitting;
    const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
    this.#insert(reservation, now);
    return reservation;
  }

  settle(settlements: readonly Settlement[], now: number): void {
    const fresh = new Set<string>();
    for (const { record } of settlements) if (!this.records.has(record.id)) fresh.add(record.id);
    for (const id of fresh) this.records.add(id);
    for (const [holder, period, since, microDollars, tokens] of chargesOf(settlements, fresh, now)) {
      const key = `${holder} ${period} ${since}`;
      const spent = this.#spent.get(key) ?? { microDollars: 0, tokens: 0 };
      this.#spent.set(key, {
        microDollars: spent.microDollars + microDollars,
        tokens: spent.tokens + tokens,
      });
    }
    for (const { id, amounts, free } of drawsOf(settlements, fresh)) {
      for (const row of this.of(id)) {
        row.microDollars = Math.max(0, row.microDollars - amounts.microDollars);
        row.tokens = Math.max(0, row.tokens - amounts.tokens);
        row.free = smaller(free, row);
      }
    }
    this.release(settlements.flatMap(({ reservation }) => reservation ?? []));
  }

  release(ids: readonly string[]): void {
    for (const id of ids) this.#replace(id, []);
  }

  giveBack({ resized, ended }: AllotmentReturns): void {
    for (const { id, amounts, free } of resized) {
      for (const row of this.of(id)) {
        row.microDollars = Math.min(row.microDollars, amounts.microDollars);
        row.tokens = Math.min(row.tokens, amounts.tokens);
        row.free = free;
        row.allotment = 0;
      }
    }
    this.release(ended);
  }

  recalled(): readonly string[] {
    const ids: string[] = [];
    for (const [id, rows] of this.#rows) if (rows.some(({ allotment }) => allotment === 2)) ids.push(id);
    return ids;
  }

  renew(reservations: readonly Reservation[], now: number): readonly string[] {
    const lost: string[] = [];
    for (const one of reservations) {
      const live = this.of(one.id).filter(({ expires }) => expires > this.#wall());
      for (const row of live) row.expires = this.#wall() + row.lease;
      if (live.length < 1 + (one.owners?.length ?? 0)) {
        lost.push(one.id);
        this.#insert(one, reservedAt(one.id) ?? now);
        this.remade.add(one.id);
      }
    }
    return lost;
  }

  sweep(): number {
    const now = this.#wall();
    let swept = 0;
    for (const [id, rows] of this.#rows) {
      const live = rows.filter(({ expires }) => expires > now);
      swept += rows.length - live.length;
      if (live.length < rows.length) this.#replace(id, live);
    }
    return swept;
  }

  states(keyId: string, budgets: readonly HeldBudget[], now: number): readonly BudgetState[] {
    const holders = new Set([keyId, ...budgets.map((budget) => holderOf(budget, keyId))]);
    return statesOf(
      keyId,
      budgets,
      [
        ...[...holders].flatMap((holder) => this.#standing(holder, now)),
        ...windowsOf(keyId, budgets, now).flatMap((window) => this.#windowed(window)),
      ],
      now,
    );
  }

  /** All reservations that were not given back or swept. */
  all(): readonly Row[] {
    return [...this.#rows.values()].flat();
  }

  /** The row of a reservation that stands for its key. */
  ofKey(id: string): Row | undefined {
    return this.of(id)[0];
  }

  /** Returns the total spending and the reserved amounts of a holder. `remade`: part of the reserved amount that is in restored reservations. */
  totals(holder: string): Readonly<Record<'spent' | 'reserved' | 'remade', number>> {
    let [reserved, remade] = [0, 0];
    for (const { id, microDollars } of this.#live(holder)) {
      reserved += microDollars;
      if (this.remade.has(id)) remade += microDollars;
    }
    return { spent: this.#spent.get(`${holder} total 0`)?.microDollars ?? 0, reserved, remade };
  }

  #standing(holder: string, now: number): readonly StandingRow[] {
    const [day, month] = [this.#starts.of('day', now), this.#starts.of('month', now)];
    const reserved = { day: noSums(), month: noSums(), total: noSums() };
    for (const row of this.#live(holder)) {
      addTo(reserved.total, row);
      if (row.day === day) addTo(reserved.day, row);
      if (row.month === month) addTo(reserved.month, row);
    }
    const rows: StandingRow[] = [];
    for (const period of ['day', 'month', 'total'] as const) {
      const since = period === 'day' ? day : period === 'month' ? month : 0;
      const spent = this.#spent.get(`${holder} ${period} ${since}`);
      if (spent !== undefined)
        rows.push({ what: 'spent', period, holder, micro_dollars: spent.microDollars, tokens: spent.tokens });
      rows.push({ what: 'reserved', period, holder, ...reserved[period] });
    }
    return rows;
  }

  #windowed({ holder, series, label, since }: Window): readonly StandingRow[] {
    const spent = { micro_dollars: 0, tokens: 0 };
    for (const [key, sums] of this.#spent) {
      const [whose, of, start] = key.split(' ');
      if (whose !== holder || of !== series || Number(start) < since) continue;
      spent.micro_dollars += Math.max(0, sums.microDollars);
      spent.tokens += Math.max(0, sums.tokens);
    }
    const reserved = noSums();
    for (const row of this.#live(holder)) if (row.made >= since) addTo(reserved, row);
    return [
      { what: 'spent', period: label, holder, ...spent },
      { what: 'reserved', period: label, holder, ...reserved },
    ];
  }

  /** Rows of a holder that count. */
  #live(holder: string): readonly Row[] {
    const now = this.#wall();
    const live: Row[] = [];
    for (const row of this.#byHolder.get(holder) ?? []) if (row.expires > now) live.push(row);
    return live;
  }

  /** Puts other rows in the place of those of a reservation. */
  #replace(id: string, rows: readonly Row[]): void {
    for (const row of this.of(id)) this.#byHolder.get(row.holder)?.delete(row);
    for (const row of rows) {
      const all = this.#byHolder.get(row.holder);
      if (all === undefined) this.#byHolder.set(row.holder, new Set([row]));
      else all.add(row);
    }
    if (rows.length === 0) this.#rows.delete(id);
    else this.#rows.set(id, rows);
  }

  /** The rows of a reservation, that of its key first. */
  of(id: string): readonly Row[] {
    return this.#rows.get(id) ?? [];
  }

  #insert({ id, keyId, owners = [], most, lease, ahead }: Reservation, at: number): void {
    const rows = [keyId, ...owners].map((holder) => ({
      id,
      holder,
      microDollars: most.microDollars + (ahead?.microDollars ?? 0),
      tokens: most.tokens + (ahead?.tokens ?? 0),
      free: ahead ?? none,
      day: this.#starts.of('day', at),
      month: this.#starts.of('month', at),
      made: at,
      lease,
      expires: this.#wall() + lease,
      allotment: ahead === undefined ? 0 : 1,
    }));
    this.#replace(id, rows);
  }
}

/** Sums of reserved amounts, as a row of the real tables has them. */
type Sums = Record<'micro_dollars' | 'tokens' | 'free_micro_dollars' | 'free_tokens', number>;

function noSums(): Sums {
  return { micro_dollars: 0, tokens: 0, free_micro_dollars: 0, free_tokens: 0 };
}

function addTo(sums: Sums, { microDollars, tokens, free }: Row): void {
  sums.micro_dollars += microDollars;
  sums.tokens += tokens;
  sums.free_micro_dollars += free.microDollars;
  sums.free_tokens += free.tokens;
}

/** Start times of days and months in UTC. Cached by day, because a world reads them often. */
class PeriodStarts {
  readonly #known = { day: new Map<number, number>(), month: new Map<number, number>() };

  of(period: 'day' | 'month', at: number): number {
    const known = this.#known[period];
    const day = Math.floor(at / 86_400_000);
    let start = known.get(day);
    if (start === undefined) known.set(day, (start = periodStart(period, at)));
    return start;
  }
}
