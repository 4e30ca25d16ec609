/** The ledger on Postgres. */
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { none, sum } from './amounts.ts';
import {
  BudgetExhausted,
  counted,
  firstThatFits,
  holderOf,
  includesOwners,
  ownersIn,
  reservationOf,
  shortOf,
} from './periods.ts';
import { columns, PostgresReservations } from './postgres-reservations.ts';
import { chargesOf, checked, drawsOf, keyClaims, ownerClaims, recalled, statesOf } from './sql.ts';
import { maxEndUsers } from './end-users.ts';
import { EndUserPlaces } from './postgres-end-users.ts';
import { freeTimesIn, windowedIn } from './postgres-windows.ts';
import { summedIn } from './windows.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { Ledger, Reservation, Settlement } from './index.ts';
import type { PostgresDatabase, PostgresSession } from '../../state/database/postgres.ts';
import { workInPostgres } from '../../state/database/sql.ts';
import { Kinds } from '../usage-log/kinds.ts';
import { insertRecordsInPostgres } from '../usage-log/rows.ts';

/** The most claims that are made together. */
const mostTogether = 500;

const ofKeys = new PostgresReservations(keyClaims);
const ofOwners = new PostgresReservations(ownerClaims);
const windowed = windowedIn(ofKeys, ofOwners);

/**
 * Claims on budgets of one holder stand in line, on any gateway; the number keeps this line apart from what else may be locked in the database.
 * Whoever stands in several lines enters them in one order.
 */
const inLine = `SELECT pg_advisory_xact_lock(571744, line)
  FROM (SELECT DISTINCT hashtext(holder) AS line FROM unnest($1::text[]) AS holder ORDER BY 1) AS lines`;

/** Adds all rows at once, in the order in which they are given. */
const charge = `INSERT INTO ledger_spent (key_id, period, since, micro_dollars, tokens)
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
  ON CONFLICT (key_id, period, since) DO UPDATE SET
    micro_dollars = ledger_spent.micro_dollars + excluded.micro_dollars, tokens = ledger_spent.tokens + excluded.tokens`;

/** A call that waits for its claim. */
interface Waiting {
  readonly keyId: string;
  readonly budgets: readonly HeldBudget[];
  /** The first of these that fits: the most that the call may come to, and what it can be held to. */
  readonly amounts: readonly [Amounts, ...Amounts[]];
  readonly wanted: Amounts | undefined;
  readonly lease: number;
  /** Nobody waits any longer. */
  over: boolean;
  readonly resolve: (reservation: Reservation) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The ledger on Postgres. Claims on budgets of one holder are made one after the other by all gateways, those of one gateway that wait together
 * with one transaction. Settlements need no place in that line: a claim looks at what is spent and reserved with one statement for keys and one
 * for owners, each of which sees a settlement as a whole or not at all.
 */
export function openPostgresLedger(database: PostgresDatabase, mostEndUsers = maxEndUsers): Ledger {
  const kinds = new Kinds();
  const lines = new ReservationQueues(database, mostEndUsers);
  return {
    reserve: (...call) => lines.reserve(...call),
    giveBack: ({ resized, ended }) =>
      database.transaction(async (session) => {
        await ofKeys.resize(session, resized);
        await ofOwners.resize(
          session,
          resized.filter(({ id }) => includesOwners(id)),
        );
        await giveBackIn(session, ended);
      }),
    async recalled() {
      return (await database.query(recalled)).map(({ id }) => String(id));
    },
    settle: (settlements) => database.transaction((session) => settleIn(session, settlements, kinds)),
    settleAfter: (settlements, first, { renewed = [], released = [] } = {}) =>
      database.transaction(async (session) => {
        const goesOn = await workInPostgres(session, first);
        if (!goesOn) return false;
        await settleIn(session, settlements, kinds);
        const now = Date.now();
        await ofKeys.insert(session, renewed, now);
        await ofOwners.insert(session, renewed, now);
        await giveBackIn(session, released);
        return true;
      }),
    release: (ids) => release(database, ids),
    async renew(reservations) {
      const ids = reservations.map(({ id }) => id);
      const kept = new Set(await ofKeys.renew(database, ids));
      const shared = new Map<string, number>();
      for (const id of await ofOwners.renew(database, ids.filter(includesOwners)))
        shared.set(id, (shared.get(id) ?? 0) + 1);
      const lost = reservations.filter(
        ({ id, owners = [] }) => !kept.has(id) || (shared.get(id) ?? 0) < owners.length,
      );
      if (lost.length > 0) {
        const now = Date.now();
        await ofKeys.insert(database, lost, now);
        await ofOwners.insert(database, lost, now);
      }
      return lost.map(({ id }) => id);
    },
    async sweep() {
      await ofOwners.sweep(database);
      return ofKeys.sweep(database);
    },
    async states(keyId, budgets) {
      const now = Date.now();
      const owners = ownersIn(budgets);
      const rows = [
        ...(await ofKeys.standing(database, [keyId], now)),
        ...(await ofOwners.standing(database, summedIn(owners), now)),
        ...(await windowed(database, [{ keyId, budgets }], now)),
      ];
      return statesOf(keyId, budgets, rows, now);
    },
  };
}

/** Queues of calls that wait for the running transaction, one for each holder that most of them share. */
class ReservationQueues {
  readonly #database: PostgresDatabase;
  readonly #mostEndUsers: number;
  /** By the last holder of budgets, whom most calls share, or the key or team of an end user. */
  readonly #lines = new Map<string, Waiting[]>();

  constructor(database: PostgresDatabase, mostEndUsers: number) {
    this.#database = database;
    this.#mostEndUsers = mostEndUsers;
  }

  /** Reserves in line. Rejects when nothing fits, or the database does not answer in time. */
  async reserve(
    ...[keyId, budgets, most, lease = 60_000, less, wanted]: Parameters<Ledger['reserve']>
  ): Promise<Reservation> {
    const amounts: Waiting['amounts'] = less === undefined ? [checked(most)] : [checked(most), checked(less)];
    const { promise, resolve, reject } = Promise.withResolvers<Reservation>();
    const waiting: Waiting = { keyId, budgets, amounts, wanted, lease, over: false, resolve, reject };
    const last = budgets.findLast(({ owner }) => owner !== undefined)?.owner;
    const name = last?.scope ?? last?.id ?? keyId;
    const line = this.#lines.get(name);
    if (line !== undefined) line.push(waiting);
    else {
      const begun = [waiting];
      this.#lines.set(name, begun);
      void this.#serve(name, begun);
    }
    const timer = setTimeout(
      () => reject(new Error('The database did not respond in time.')),
      this.#database.patience,
    );
    try {
      return await promise;
    } finally {
      waiting.over = true;
      clearTimeout(timer);
    }
  }

  /** Returns for each call its reservation, or the error. */
  #reserveBatch(together: readonly Waiting[]): Promise<readonly (Reservation | Error)[]> {
    return this.#database.transaction(async (session) => {
      const keys = [...new Set(together.map(({ keyId }) => keyId))];
      const owners = ownersIn(together.flatMap(({ budgets }) => budgets));
      const scopes = together.flatMap(({ budgets }) => budgets.flatMap(({ owner }) => owner?.scope ?? []));
      await session.query(inLine, [[...keys, ...owners, ...scopes]]);
      const now = Date.now();
      const places = new EndUserPlaces(session, now, this.#mostEndUsers);
      await places.read(together);
      const rows = [
        ...(await ofKeys.standing(session, keys, now)),
        ...(await ofOwners.standing(session, summedIn(owners), now)),
        ...(await windowed(session, together, now)),
      ];
      const claims: Reservation[] = [];
      /** Amounts that this transaction has claimed of each holder's budgets. */
      const claimed = new Map<string, Amounts>();
      const short = new Set<string>();
      const outcomes = together.map((call) => {
        const { keyId, budgets, amounts, lease, wanted } = call;
        const states = statesOf(keyId, budgets, rows, now).map((state) => ({
          ...state,
          reserved: state.reserved + counted(state.unit, claimed.get(holderOf(state, keyId)) ?? none),
        }));
        const fitting = firstThatFits(states, amounts, now);
        const [most] = amounts;
        const lacking = fitting === most ? [] : shortOf(states, most, keyId);
        for (const holder of lacking) short.add(holder);
        if (fitting instanceof BudgetExhausted) return { fitting, lacking };
        const tooMany = places.take(call);
        if (tooMany !== undefined) return tooMany;
        const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
        const held = sum(fitting, reservation.ahead ?? none);
        for (const holder of [keyId, ...(reservation.owners ?? [])])
          claimed.set(holder, sum(claimed.get(holder) ?? none, held));
        claims.push(reservation);
        return reservation;
      });
      await places.write();
      await ofKeys.insert(session, claims, now);
      await ofOwners.insert(session, claims, now);
      const recalledHolders = new Set([
        ...(await ofKeys.recall(
          session,
          keys.filter((id) => short.has(id)),
        )),
        ...(await ofOwners.recall(
          session,
          owners.filter((id) => short.has(id)),
        )),
      ]);
      const withTime = freeTimesIn(session, now);
      const results: (Reservation | Error)[] = [];
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome instanceof GatewayError) results.push(outcome);
        else if ('fitting' in outcome) {
          outcome.fitting.recalls = outcome.lacking.some((holder) => recalledHolders.has(holder));
          // oxlint-disable-next-line no-await-in-loop -- one session answers one after the other
          results.push(await withTime(outcome.fitting, together[index]?.keyId ?? ''));
        } else results.push(outcome);
      }
      return results;
    });
  }

  /** Serves a line until nobody stands in it. */
  async #serve(name: string, line: Waiting[]): Promise<void> {
    while (line.length > 0) {
      const together = line.splice(0, mostTogether).filter(({ over }) => !over);
      if (together.length === 0) continue;
      try {
        const outcomes = await this.#reserveBatch(together);
        const late: string[] = [];
        for (const [index, waiting] of together.entries()) {
          const outcome = outcomes[index];
          if (outcome === undefined || outcome instanceof Error) waiting.reject(outcome);
          else if (waiting.over) late.push(outcome.id);
          else waiting.resolve(outcome);
        }
        // What cannot be given back now is swept when its lease is over.
        if (late.length > 0) await release(this.#database, late).catch(() => {});
      } catch (error) {
        for (const waiting of together) waiting.reject(error);
      }
    }
    this.#lines.delete(name);
  }
}

async function release(database: PostgresDatabase, ids: readonly string[]): Promise<void> {
  if (!ids.some(includesOwners)) return ofKeys.giveBack(database, ids);
  await database.transaction((session) => giveBackIn(session, ids));
}

async function giveBackIn(session: PostgresSession, ids: readonly string[]): Promise<void> {
  await ofKeys.giveBack(session, ids);
  await ofOwners.giveBack(session, ids.filter(includesOwners));
}

async function settleIn(
  session: PostgresSession,
  settlements: readonly Settlement[],
  kinds: Kinds,
): Promise<void> {
  const records = settlements.map(({ record }) => record);
  const fresh = await insertRecordsInPostgres(session, records, kinds);
  const rows = chargesOf(settlements, fresh, Date.now());
  if (rows.length > 0) await session.query(charge, columns(rows));
  const draws = drawsOf(settlements, fresh);
  await ofKeys.draw(session, draws);
  await ofOwners.draw(
    session,
    draws.filter(({ id }) => includesOwners(id)),
  );
  await giveBackIn(
    session,
    settlements.flatMap(({ reservation }) => reservation ?? []),
  );
}
