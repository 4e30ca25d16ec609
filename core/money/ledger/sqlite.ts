import type { DatabaseSync } from 'node:sqlite';
import { none, sum } from './amounts.ts';
import { BudgetExhausted, firstThatFits, periodStart, reservationOf, reservedAt } from './periods.ts';
import { chargesOf, checked, drawsOf, standingAt, statesOf } from './sql.ts';
import type { Ledger, Reservation, Settlement } from './index.ts';
import { workInSqlite } from '../../state/database/sql.ts';
import { transactionInSqlite } from '../../state/database/sqlite-writes.ts';
import { insertRecordsInSqlite } from '../usage-log/rows.ts';

/** How long another process's write is waited for before the operation fails, in milliseconds. */
const patience = 1_000;

/**
 * The ledger on SQLite. Every change is one synchronous transaction that takes the write lock before it reads, so that no other process's
 * claim can come between a look and a claim. Leases are measured by the clock of the machine, which all processes on one file share.
 */
export function openSqliteLedger(connection: DatabaseSync): Ledger {
  // Values go by their place or by name: Node 22 binds no numbers (`?1`).
  const standing = connection.prepare(standingAt({ key: '$key', day: '$day', month: '$month', now: '$now' }));
  const claim = connection.prepare(
    `INSERT INTO ledger_reservations (id, key_id, micro_dollars, tokens, day, month, lease, expires, allotment, free_micro_dollars, free_tokens)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
       micro_dollars = excluded.micro_dollars, tokens = excluded.tokens, allotment = excluded.allotment,
       free_micro_dollars = excluded.free_micro_dollars, free_tokens = excluded.free_tokens, lease = excluded.lease, expires = excluded.expires`,
  );
  const charge = connection.prepare(
    `INSERT INTO ledger_spent (key_id, period, since, micro_dollars, tokens) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (key_id, period, since) DO UPDATE SET
       micro_dollars = ledger_spent.micro_dollars + excluded.micro_dollars, tokens = ledger_spent.tokens + excluded.tokens`,
  );
  const giveBack = connection.prepare('DELETE FROM ledger_reservations WHERE id = ?');
  const draw = connection.prepare(
    `UPDATE ledger_reservations SET micro_dollars = max(0, micro_dollars - $dollars), tokens = max(0, tokens - $tokens),
       free_micro_dollars = min($freeDollars, max(0, micro_dollars - $dollars)), free_tokens = min($freeTokens, max(0, tokens - $tokens)) WHERE id = $id`,
  );
  const resize = connection.prepare(
    'UPDATE ledger_reservations SET micro_dollars = min(micro_dollars, ?), tokens = min(tokens, ?), free_micro_dollars = 0, free_tokens = 0, allotment = 0 WHERE id = ?',
  );
  const recall = connection.prepare(
    'UPDATE ledger_reservations SET allotment = 2 WHERE key_id = ? AND allotment = 1 AND expires > ?',
  );
  const isRecalled = connection.prepare(
    'SELECT 1 FROM ledger_reservations WHERE key_id = ? AND allotment = 2 AND expires > ? LIMIT 1',
  );
  const recalled = connection.prepare('SELECT id FROM ledger_reservations WHERE allotment = 2');
  const renewal = connection.prepare(
    'UPDATE ledger_reservations SET expires = $now + lease WHERE id = $id AND expires > $now',
  );
  const expired = connection.prepare('SELECT 1 FROM ledger_reservations WHERE expires <= ? LIMIT 1');
  const sweeping = connection.prepare('DELETE FROM ledger_reservations WHERE expires <= ?');

  const inTransaction = <T>(work: () => T): Promise<T> => transactionInSqlite(connection, work, patience);
  const standingOf = (keyId: string, now: number) =>
    standing.all({ key: keyId, day: periodStart('day', now), month: periodStart('month', now), now });

  const claimNow = ({ id, keyId, most, lease, ahead }: Reservation, at: number, now: number): void => {
    const { microDollars, tokens } = sum(most, ahead ?? none);
    const [day, month] = [periodStart('day', at), periodStart('month', at)];
    const free = ahead ?? none;
    const allotment = ahead === undefined ? 0 : 1;
    const until = [lease, now + lease] as const;
    claim.run(
      id,
      keyId,
      microDollars,
      tokens,
      day,
      month,
      ...until,
      allotment,
      free.microDollars,
      free.tokens,
    );
  };

  const settleNow = (settlements: readonly Settlement[]): void => {
    const fresh = insertRecordsInSqlite(
      connection,
      settlements.map(({ record }) => record),
    );
    for (const row of chargesOf(settlements, fresh, Date.now())) charge.run(...row);
    for (const { id, amounts, free } of drawsOf(settlements, fresh)) {
      const [dollars, tokens] = [amounts.microDollars, amounts.tokens];
      draw.run({ id, dollars, tokens, freeDollars: free.microDollars, freeTokens: free.tokens });
    }
    for (const { reservation } of settlements) if (reservation !== undefined) giveBack.run(reservation);
  };

  return {
    async reserve(keyId, budgets, most, lease = 60_000, less = undefined, wanted = undefined) {
      const amounts = less === undefined ? [checked(most)] : [checked(most), checked(less)];
      const outcome = await inTransaction(() => {
        const now = Date.now();
        const states = statesOf(budgets, standingOf(keyId, now), now);
        const fitting = firstThatFits(states, amounts, now);
        if (fitting !== amounts[0]) recall.run(keyId, now);
        if (fitting instanceof BudgetExhausted) {
          fitting.recalls = isRecalled.get(keyId, now) !== undefined;
          return fitting;
        }
        const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
        claimNow(reservation, now, now);
        return reservation;
      });
      if (outcome instanceof BudgetExhausted) throw outcome;
      return outcome;
    },
    giveBack: ({ resized, ended }) =>
      inTransaction(() => {
        for (const { id, amounts } of resized) resize.run(amounts.microDollars, amounts.tokens, id);
        for (const id of ended) giveBack.run(id);
      }),
    recalled: async () => recalled.all().map(({ id }) => String(id)),
    settle: (settlements) => inTransaction(() => settleNow(settlements)),
    settleAfter: (settlements, first, { renewed = [], released = [] } = {}) =>
      inTransaction(() => {
        const goesOn = workInSqlite(connection, first);
        if (!goesOn) return false;
        settleNow(settlements);
        const now = Date.now();
        for (const one of renewed) claimNow(one, reservedAt(one.id) ?? now, now);
        for (const id of released) giveBack.run(id);
        return true;
      }),
    release: (reservations) =>
      inTransaction(() => {
        for (const id of reservations) giveBack.run(id);
      }),
    renew: (reservations) =>
      inTransaction(() => {
        const now = Date.now();
        const lost = reservations.filter(({ id }) => Number(renewal.run({ now, id }).changes) === 0);
        for (const one of lost) claimNow(one, reservedAt(one.id) ?? now, now);
        return lost.map(({ id }) => id);
      }),
    async sweep() {
      // Most times there is nothing: a look needs no lock.
      if (expired.get(Date.now()) === undefined) return 0;
      return inTransaction(() => Number(sweeping.run(Date.now()).changes));
    },
    async states(keyId, budgets) {
      const now = Date.now();
      return statesOf(budgets, standingOf(keyId, now), now);
    },
  };
}
