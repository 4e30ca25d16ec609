import type { Budget } from '../../core/sdk/api-key.ts';
import type { Amounts } from '../../core/model/usage-record.ts';
import { none, smaller, sum } from '../../core/money/ledger/amounts.ts';
import {
  BudgetExhausted,
  firstThatFits,
  periodStart,
  reservationOf,
  reservedAt,
} from '../../core/money/ledger/periods.ts';
import { chargesOf, drawsOf, statesOf, type StandingRow } from '../../core/money/ledger/sql.ts';
import type {
  AllotmentReturns,
  BudgetState,
  Reservation,
  Settlement,
} from '../../core/money/ledger/index.ts';

/** A reservation as the database has it. */
export interface Row {
  readonly keyId: string;
  microDollars: number;
  tokens: number;
  /** What no call uses of it. */
  free: Amounts;
  readonly day: number;
  readonly month: number;
  readonly lease: number;
  expires: number;
  /** 1: an allotment, 2: one that was recalled. */
  allotment: number;
}

/** The ledger's tables in memory. Each method is one transaction, and does what the statements of the real ledgers do. */
export class MemoryDatabase {
  readonly rows = new Map<string, Row>();
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
    budgets: readonly Budget[],
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
    if (fitting !== most)
      for (const row of this.#live()) if (row.keyId === keyId && row.allotment === 1) row.allotment = 2;
    if (fitting instanceof BudgetExhausted) {
      for (const row of this.#live()) if (row.keyId === keyId && row.allotment === 2) fitting.recalls = true;
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
    for (const [keyId, period, since, microDollars, tokens] of chargesOf(settlements, fresh, now)) {
      const place = `${keyId} ${period} ${since}`;
      const spent = this.#spent.get(place) ?? { microDollars: 0, tokens: 0 };
      this.#spent.set(place, {
        microDollars: spent.microDollars + microDollars,
        tokens: spent.tokens + tokens,
      });
    }
    for (const { id, amounts, free } of drawsOf(settlements, fresh)) {
      const row = this.rows.get(id);
      if (row === undefined) continue;
      row.microDollars = Math.max(0, row.microDollars - amounts.microDollars);
      row.tokens = Math.max(0, row.tokens - amounts.tokens);
      row.free = smaller(free, row);
    }
    for (const { reservation } of settlements) if (reservation !== undefined) this.rows.delete(reservation);
  }

  release(ids: readonly string[]): void {
    for (const id of ids) this.rows.delete(id);
  }

  giveBack({ resized, ended }: AllotmentReturns): void {
    for (const { id, amounts, free } of resized) {
      const row = this.rows.get(id);
      if (row === undefined) continue;
      row.microDollars = Math.min(row.microDollars, amounts.microDollars);
      row.tokens = Math.min(row.tokens, amounts.tokens);
      row.free = free;
      row.allotment = 0;
    }
    this.release(ended);
  }

  recalled(): readonly string[] {
    return [...this.rows].filter(([, { allotment }]) => allotment === 2).map(([id]) => id);
  }

  renew(reservations: readonly Reservation[], now: number): readonly string[] {
    const lost: string[] = [];
    for (const one of reservations) {
      const row = this.rows.get(one.id);
      if (row !== undefined && row.expires > this.#wall()) row.expires = this.#wall() + row.lease;
      else {
        lost.push(one.id);
        this.#insert(one, reservedAt(one.id) ?? now);
        this.remade.add(one.id);
      }
    }
    return lost;
  }

  sweep(): number {
    const expired = [...this.rows].filter(([, row]) => row.expires <= this.#wall());
    for (const [id] of expired) this.rows.delete(id);
    return expired.length;
  }

  states(keyId: string, budgets: readonly Budget[], now: number): readonly BudgetState[] {
    const rows: StandingRow[] = [];
    for (const period of ['day', 'month', 'total'] as const) {
      const since = periodStart(period, now);
      const spent = this.#spent.get(`${keyId} ${period} ${since}`);
      if (spent !== undefined)
        rows.push({ what: 'spent', period, micro_dollars: spent.microDollars, tokens: spent.tokens });
      let [microDollars, tokens] = [0, 0];
      let free = none;
      for (const row of this.#live()) {
        if (row.keyId !== keyId || (period !== 'total' && row[period] !== since)) continue;
        microDollars += row.microDollars;
        tokens += row.tokens;
        free = sum(free, row.free);
      }
      const freeSums = { free_micro_dollars: free.microDollars, free_tokens: free.tokens };
      rows.push({ what: 'reserved', period, micro_dollars: microDollars, tokens, ...freeSums });
    }
    return statesOf(budgets, rows, now);
  }

  /** Rows that count. */
  *#live(): Generator<Row> {
    for (const row of this.rows.values()) if (row.expires > this.#wall()) yield row;
  }

  #insert({ id, keyId, most, lease, ahead }: Reservation, at: number): void {
    this.rows.set(id, {
      keyId,
      microDollars: most.microDollars + (ahead?.microDollars ?? 0),
      tokens: most.tokens + (ahead?.tokens ?? 0),
      free: ahead ?? none,
      day: periodStart('day', at),
      month: periodStart('month', at),
      lease,
      expires: this.#wall() + lease,
      allotment: ahead === undefined ? 0 : 1,
    });
  }
}
