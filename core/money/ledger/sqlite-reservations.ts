/** The claims of one table in SQLite: those on budgets of keys, or those on budgets of their owners. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Amounts } from '../../model/usage-record.ts';
import { none, sum } from './amounts.ts';
import type { AllotmentDraw, Reservation } from './index.ts';
import { periodStart } from './periods.ts';
import { lazyStatement } from '../../state/database/lazy-statement.ts';
import { ownerClaims, standingAt, windowsAt, type ReservationTable, type StandingRow } from './sql.ts';
import type { Window } from './windows.ts';

/** Reads and writes reservations. Does not begin transactions. */
export class SqliteReservations {
  readonly #standing: () => StatementSync;
  readonly #windows: () => StatementSync;
  readonly #insertSql: () => StatementSync;
  readonly #giveBack: () => StatementSync;
  readonly #draw: () => StatementSync;
  readonly #resize: () => StatementSync;
  readonly #recall: () => StatementSync;
  readonly #isRecalled: () => StatementSync;
  readonly #renew: () => StatementSync;
  readonly #expired: () => StatementSync;
  readonly #sweep: () => StatementSync;

  constructor(connection: DatabaseSync, claims: ReservationTable) {
    const { table, holder } = claims;
    const identity = claims === ownerClaims ? `id, ${holder}` : 'id';
    const prepare = (sql: string) => lazyStatement(connection, sql);
    this.#standing = prepare(
      standingAt(claims, { holders: '= $holder', day: '$day', month: '$month', now: '$now' }),
    );
    this.#windows = prepare(
      windowsAt(claims, {
        requested: `SELECT $holder AS holder, value ->> 'series' AS series, value ->> 'label' AS label, value ->> 'since' AS since FROM json_each($windows)`,
        now: '$now',
      }),
    );
    this.#insertSql = prepare(
      `INSERT INTO ${table} (id, ${holder}, micro_dollars, tokens, day, month, made, lease, expires, allotment, free_micro_dollars, free_tokens)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (${identity}) DO UPDATE SET
         micro_dollars = excluded.micro_dollars, tokens = excluded.tokens, allotment = excluded.allotment,
         free_micro_dollars = excluded.free_micro_dollars, free_tokens = excluded.free_tokens, lease = excluded.lease, expires = excluded.expires`,
    );
    this.#giveBack = prepare(`DELETE FROM ${table} WHERE id = ?`);
    this.#draw = prepare(
      `UPDATE ${table} SET micro_dollars = max(0, micro_dollars - $dollars), tokens = max(0, tokens - $tokens),
         free_micro_dollars = min($freeDollars, max(0, micro_dollars - $dollars)), free_tokens = min($freeTokens, max(0, tokens - $tokens)) WHERE id = $id`,
    );
    this.#resize = prepare(
      `UPDATE ${table} SET micro_dollars = min(micro_dollars, ?), tokens = min(tokens, ?), free_micro_dollars = 0, free_tokens = 0, allotment = 0 WHERE id = ?`,
    );
    this.#recall = prepare(
      `UPDATE ${table} SET allotment = 2 WHERE ${holder} = ? AND allotment = 1 AND expires > ?`,
    );
    this.#isRecalled = prepare(
      `SELECT 1 FROM ${table} WHERE ${holder} = ? AND allotment = 2 AND expires > ? LIMIT 1`,
    );
    this.#renew = prepare(`UPDATE ${table} SET expires = $now + lease WHERE id = $id AND expires > $now`);
    this.#expired = prepare(`SELECT 1 FROM ${table} WHERE expires <= ? LIMIT 1`);
    this.#sweep = prepare(`DELETE FROM ${table} WHERE expires <= ?`);
  }

  /** Returns what a holder has spent and reserved. */
  standing(holder: string, now: number): readonly StandingRow[] {
    return this.#standing().all({
      holder,
      day: periodStart('day', now),
      month: periodStart('month', now),
      now,
    });
  }

  /** Returns what a holder has spent and reserved in windows of its own. */
  windows(holder: string, windows: readonly Window[], now: number): readonly StandingRow[] {
    const requested = windows.filter((one) => one.holder === holder);
    return requested.length === 0
      ? []
      : this.#windows().all({ holder, windows: JSON.stringify(requested), now });
  }

  /** Inserts what a reservation holds on a holder's budgets. `at`: time at which the reservation was made first. */
  insert({ id, most, lease, ahead }: Reservation, holder: string, at: number, now: number): void {
    const free = ahead ?? none;
    const { microDollars, tokens } = sum(most, free);
    const [day, month] = [periodStart('day', at), periodStart('month', at)];
    const allotment = ahead === undefined ? 0 : 1;
    const held = [microDollars, tokens, day, month, at, lease, now + lease] as const;
    this.#insertSql().run(id, holder, ...held, allotment, free.microDollars, free.tokens);
  }

  giveBack(id: string): void {
    this.#giveBack().run(id);
  }

  /** Takes what a call was charged off an allotment. */
  draw({ id, amounts, free }: AllotmentDraw): void {
    const [dollars, tokens] = [amounts.microDollars, amounts.tokens];
    this.#draw().run({ id, dollars, tokens, freeDollars: free.microDollars, freeTokens: free.tokens });
  }

  /** Lowers an allotment that serves no calls any more to what it still needs. */
  resize(id: string, { microDollars, tokens }: Amounts): void {
    this.#resize().run(microDollars, tokens, id);
  }

  /** Recalls the allotments of a holder. True when there are some that were not given back yet. */
  recall(holder: string, now: number): boolean {
    this.#recall().run(holder, now);
    return this.#isRecalled().get(holder, now) !== undefined;
  }

  /** Moves the expiry of a reservation's claims that have not run out. Returns how many there are. */
  renew(id: string, now: number): number {
    return Number(this.#renew().run({ now, id }).changes);
  }

  hasExpired(now: number): boolean {
    return this.#expired().get(now) !== undefined;
  }

  /** Removes expired claims; returns how many there were. */
  sweep(now: number): number {
    return Number(this.#sweep().run(now).changes);
  }
}
