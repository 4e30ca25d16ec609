import type { HeldBudget } from '../../core/sdk/budget.ts';
import type { Amounts } from '../../core/model/usage-record.ts';
import { none, smaller, sum } from '../../core/money/ledger/amounts.ts';
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
  /** What no call uses of it. */
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
  readonly #rows = new Map<string, Row[]>();
  readonly records = new Set<string>();
  /** Ids of reservations that were made anew for calls that go on, or that had just ended, whether or not there was room. */
  readonly remade = new Set<string>();
  readonly #spent = new Map<string, { microDollars: number; tokens: number }>();
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
    for (const row of this.#live()) if (short.has(row.holder) && row.allotment === 1) row.allotment = 2;
    if (fitting instanceof BudgetExhausted) {
      for (const row of this.#live())
        if (short.has(row.holder) && row.allotment === 2) fitting.recalls = true;
      return fitting;
    }
    const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
    this.#insert(reservation, now);
    return reservation;
  }

  settle(settlements: readonly Settlement[], now: number): void {
    const fresh = new Set<string>();
    for (const { record } of settlements) if (!this.records.has(record.id)) fresh.add(record.id);
    for (const id of fresh) this.records.add(id);
    for (const [holder, period, since, microDollars, tokens] of chargesOf(settlements, fresh, now)) {
      const place = `${holder} ${period} ${since}`;
      const spent = this.#spent.get(place) ?? { microDollars: 0, tokens: 0 };
      this.#spent.set(place, {
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
    for (const id of ids) this.#rows.delete(id);
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
    return [...new Set(this.all().flatMap(({ id, allotment }) => (allotment === 2 ? [id] : [])))];
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
    const expired = this.all().filter(({ expires }) => expires <= this.#wall());
    for (const { id } of expired) {
      const live = this.of(id).filter((row) => row.expires > this.#wall());
      if (live.length === 0) this.#rows.delete(id);
      else this.#rows.set(id, live);
    }
    return expired.length;
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

  #standing(holder: string, now: number): readonly StandingRow[] {
    const rows: StandingRow[] = [];
    for (const period of ['day', 'month', 'total'] as const) {
      const since = periodStart(period, now);
      const spent = this.#spent.get(`${holder} ${period} ${since}`);
      if (spent !== undefined)
        rows.push({ what: 'spent', period, holder, micro_dollars: spent.microDollars, tokens: spent.tokens });
      let [microDollars, tokens] = [0, 0];
      let free = none;
      for (const row of this.#live()) {
        if (row.holder !== holder || (period !== 'total' && row[period] !== since)) continue;
        microDollars += row.microDollars;
        tokens += row.tokens;
        free = sum(free, row.free);
      }
      const freeSums = { free_micro_dollars: free.microDollars, free_tokens: free.tokens };
      rows.push({ what: 'reserved', period, holder, micro_dollars: microDollars, tokens, ...freeSums });
    }
    return rows;
  }

  #windowed({ holder, series, label, since }: Window): readonly StandingRow[] {
    const spent = { micro_dollars: 0, tokens: 0 };
    for (const [place, sums] of this.#spent) {
      const [whose, of, start] = place.split(' ');
      if (whose !== holder || of !== series || Number(start) < since) continue;
      spent.micro_dollars += Math.max(0, sums.microDollars);
      spent.tokens += Math.max(0, sums.tokens);
    }
    const reserved = { micro_dollars: 0, tokens: 0, free_micro_dollars: 0, free_tokens: 0 };
    for (const row of this.#live()) {
      if (row.holder !== holder || row.made < since) continue;
      reserved.micro_dollars += row.microDollars;
      reserved.tokens += row.tokens;
      reserved.free_micro_dollars += row.free.microDollars;
      reserved.free_tokens += row.free.tokens;
    }
    return [
      { what: 'spent', period: label, holder, ...spent },
      { what: 'reserved', period: label, holder, ...reserved },
    ];
  }

  /** Rows that count. */
  *#live(): Generator<Row> {
    for (const rows of this.#rows.values()) for (const row of rows) if (row.expires > this.#wall()) yield row;
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
      day: periodStart('day', at),
      month: periodStart('month', at),
      made: at,
      lease,
      expires: this.#wall() + lease,
      allotment: ahead === undefined ? 0 : 1,
    }));
    this.#rows.set(id, rows);
  }
}
