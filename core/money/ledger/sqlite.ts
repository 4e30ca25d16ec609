/** The ledger on SQLite. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  BudgetExhausted,
  firstThatFits,
  holderOf,
  includesOwners,
  ownersIn,
  reservationOf,
  reservedAt,
  shortOf,
  withFreeTime,
} from './periods.ts';
import {
  bucketsAt,
  bucketsOf,
  chargesOf,
  checked,
  drawsOf,
  keyClaims,
  ownerClaims,
  recalled,
  statesOf,
} from './sql.ts';
import { labelOf, summedIn, windowsOf } from './windows.ts';
import { endUsersIn, maxEndUsers, tooManyEndUsers } from './end-users.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { SqliteReservations } from './sqlite-reservations.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import type { Ledger, Reservation, Settlement } from './index.ts';
import { lazyStatement } from '../../state/database/lazy-statement.ts';
import { workInSqlite } from '../../state/database/sql.ts';
import { transactionInSqlite } from '../../state/database/sqlite-writes.ts';
import { insertRecordsInSqlite } from '../usage-log/rows.ts';

/** How long another process's write is waited for before the operation fails, in milliseconds. */
const patience = 1_000;

/**
 * The ledger on SQLite. Every change is one synchronous transaction that takes the write lock before it reads, so that no other process's
 * claim can come between a look and a claim. Leases are measured by the clock of the machine, which all processes on one file share.
 */
export function openSqliteLedger(connection: DatabaseSync, mostEndUsers = maxEndUsers): Ledger {
  const statements = new LedgerStatements(connection, mostEndUsers);
  const allRecalled = lazyStatement(connection, recalled);
  return {
    async reserve(keyId, budgets, most, lease = 60_000, less = undefined, wanted = undefined) {
      const amounts = less === undefined ? [checked(most)] : [checked(most), checked(less)];
      const outcome = await statements.inTransaction(() => {
        const now = Date.now();
        const states = statesOf(keyId, budgets, statements.standingOf(keyId, budgets, now), now);
        const fitting = firstThatFits(states, amounts, now);
        const recalls = fitting !== amounts[0] && statements.recall(shortOf(states, most, keyId), keyId, now);
        if (fitting instanceof BudgetExhausted) {
          fitting.recalls = recalls;
          return statements.withFreeTime(fitting, keyId, now);
        }
        const tooMany = statements.takePlaces(budgets, now);
        if (tooMany !== undefined) return tooMany;
        const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
        statements.insertReservation(reservation, now, now);
        return reservation;
      });
      if (outcome instanceof GatewayError) throw outcome;
      return outcome;
    },
    giveBack: ({ resized, ended }) =>
      statements.inTransaction(() => {
        for (const { id, amounts } of resized)
          for (const claims of statements.claimsOf(id)) claims.resize(id, amounts);
        for (const id of ended) statements.giveBack(id);
      }),
    recalled: async () =>
      allRecalled()
        .all()
        .map(({ id }) => String(id)),
    settle: (settlements) => statements.inTransaction(() => statements.settleNow(settlements)),
    settleAfter: (settlements, first, { renewed = [], released = [] } = {}) =>
      statements.inTransaction(() => {
        const goesOn = workInSqlite(connection, first);
        if (!goesOn) return false;
        statements.settleNow(settlements);
        const now = Date.now();
        for (const one of renewed) statements.insertReservation(one, reservedAt(one.id) ?? now, now);
        for (const id of released) statements.giveBack(id);
        return true;
      }),
    release: (reservations) =>
      statements.inTransaction(() => {
        for (const id of reservations) statements.giveBack(id);
      }),
    renew: (reservations) =>
      statements.inTransaction(() => {
        const now = Date.now();
        const lost = reservations.filter(({ id, owners = [] }) => {
          const isKept = statements.ofKeys.renew(id, now) === 1;
          return !(owners.length === 0
            ? isKept
            : statements.ofOwners.renew(id, now) === owners.length && isKept);
        });
        for (const one of lost) statements.insertReservation(one, reservedAt(one.id) ?? now, now);
        return lost.map(({ id }) => id);
      }),
    async sweep() {
      const now = Date.now();
      // Most times there is nothing: a look needs no lock.
      if (!statements.ofKeys.hasExpired(now) && !statements.ofOwners.hasExpired(now)) return 0;
      return statements.inTransaction(() => {
        statements.ofOwners.sweep(now);
        return statements.ofKeys.sweep(now);
      });
    },
    async states(keyId, budgets) {
      const now = Date.now();
      return statesOf(keyId, budgets, statements.standingOf(keyId, budgets, now), now);
    },
  };
}

/** Statements of the ledger in one connection; those that write belong in {@link inTransaction}. */
class LedgerStatements {
  readonly ofKeys: SqliteReservations;
  readonly ofOwners: SqliteReservations;
  readonly #connection: DatabaseSync;
  readonly #mostEndUsers: number;
  readonly #charge: () => StatementSync;
  readonly #spentBuckets: () => StatementSync;
  readonly #knownEndUser: () => StatementSync;
  readonly #endUserCount: () => StatementSync;
  readonly #newEndUser: () => StatementSync;

  constructor(connection: DatabaseSync, mostEndUsers: number) {
    this.#connection = connection;
    this.#mostEndUsers = mostEndUsers;
    this.ofKeys = new SqliteReservations(connection, keyClaims);
    this.ofOwners = new SqliteReservations(connection, ownerClaims);
    // Values go by their place or by name: Node 22 binds no numbers (`?1`).
    this.#charge = lazyStatement(
      connection,
      `INSERT INTO ledger_spent (key_id, period, since, micro_dollars, tokens) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (key_id, period, since) DO UPDATE SET
         micro_dollars = ledger_spent.micro_dollars + excluded.micro_dollars, tokens = ledger_spent.tokens + excluded.tokens`,
    );
    this.#spentBuckets = lazyStatement(connection, bucketsAt('?', '?', '?'));
    this.#knownEndUser = lazyStatement(
      connection,
      'SELECT 1 FROM ledger_end_users WHERE scope = ? AND until = ? AND holder = ?',
    );
    this.#endUserCount = lazyStatement(
      connection,
      'SELECT COUNT(*) AS count FROM ledger_end_users WHERE scope = ? AND until = ?',
    );
    this.#newEndUser = lazyStatement(
      connection,
      'INSERT INTO ledger_end_users (scope, until, holder) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
  }

  inTransaction<T>(work: () => T): Promise<T> {
    return transactionInSqlite(this.#connection, work, patience);
  }

  /** The claims that a reservation has made. */
  claimsOf(id: string): readonly SqliteReservations[] {
    return includesOwners(id) ? [this.ofKeys, this.ofOwners] : [this.ofKeys];
  }

  #windowed(keyId: string, budgets: readonly HeldBudget[], now: number) {
    const windows = windowsOf(keyId, budgets, now);
    if (windows.length === 0) return [];
    return [...new Set(windows.map(({ holder }) => holder))].map((holder) =>
      (holder === keyId ? this.ofKeys : this.ofOwners).windows(holder, windows, now),
    );
  }

  /** Adds to a refusal when enough of its rolling window is free. */
  withFreeTime(refusal: BudgetExhausted, keyId: string, now: number): BudgetExhausted {
    const { full } = refusal;
    if (full === undefined) return refusal;
    const rows = this.#spentBuckets().all(holderOf(full.budget, keyId), labelOf(full.budget), full.since);
    return withFreeTime(refusal, full, bucketsOf(full.budget, rows), now);
  }

  standingOf(keyId: string, budgets: readonly HeldBudget[], now: number) {
    return [
      this.ofKeys.standing(keyId, now),
      ...summedIn(ownersIn(budgets)).map((owner) => this.ofOwners.standing(owner, now)),
      ...this.#windowed(keyId, budgets, now),
    ].flat();
  }

  /** Gives the end users of a call their places, all or none. Returns the refusal where there are too many. */
  takePlaces(budgets: readonly HeldBudget[], now: number): GatewayError | undefined {
    const fresh = endUsersIn(budgets, now).filter(
      ({ scope, until, holder }) => this.#knownEndUser().get(scope, until, holder) === undefined,
    );
    const full = fresh.find(
      ({ scope, until }) => Number(this.#endUserCount().get(scope, until)?.['count']) >= this.#mostEndUsers,
    );
    if (full !== undefined) return tooManyEndUsers(full.until, now, this.#mostEndUsers);
    for (const { scope, until, holder } of fresh) this.#newEndUser().run(scope, until, holder);
    return undefined;
  }

  insertReservation(reservation: Reservation, at: number, now: number): void {
    this.ofKeys.insert(reservation, reservation.keyId, at, now);
    for (const owner of reservation.owners ?? []) this.ofOwners.insert(reservation, owner, at, now);
  }

  giveBack(id: string): void {
    for (const claims of this.claimsOf(id)) claims.giveBack(id);
  }

  /** Recalls what is reserved ahead by those who lack room. True when there is something to wait for. */
  recall(holders: readonly string[], keyId: string, now: number): boolean {
    return holders
      .map((holder) => (holder === keyId ? this.ofKeys : this.ofOwners).recall(holder, now))
      .some((isRecalled) => isRecalled);
  }

  settleNow(settlements: readonly Settlement[]): void {
    const fresh = insertRecordsInSqlite(
      this.#connection,
      settlements.map(({ record }) => record),
    );
    for (const row of chargesOf(settlements, fresh, Date.now())) this.#charge().run(...row);
    for (const draw of drawsOf(settlements, fresh))
      for (const claims of this.claimsOf(draw.id)) claims.draw(draw);
    for (const { reservation } of settlements) if (reservation !== undefined) this.giveBack(reservation);
  }
}
