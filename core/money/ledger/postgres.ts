import type { Amounts } from '../../model/usage-record.ts';
import type { Budget } from '../../sdk/api-key.ts';
import { none, sum } from './amounts.ts';
import {
  BudgetExhausted,
  counted,
  firstThatFits,
  periodStart,
  reservationOf,
  reservedAt,
} from './periods.ts';
import { chargesOf, checked, drawsOf, standingAt, statesOf, type ChargeRow } from './sql.ts';
import type { AllotmentDraw, Ledger, Reservation, Settlement } from './index.ts';
import type { PostgresDatabase, PostgresSession } from '../../state/database/postgres.ts';
import { workInPostgres } from '../../state/database/sql.ts';
import { Kinds } from '../usage-log/kinds.ts';
import { insertRecordsInPostgres } from '../usage-log/rows.ts';

/** The most claims on one key that are made together. */
const mostTogether = 500;

/** Leases are measured by the server's clock alone: those of gateways may differ from it and from each other. */
const clock = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const standing = standingAt({ key: '$1', day: '$2', month: '$3', now: clock });
const giveBack = 'DELETE FROM ledger_reservations WHERE id = ANY($1::text[])';

/** Claims on one key stand in line, on any gateway; the number keeps this line apart from what else may be locked in the database. */
const inLine = 'SELECT pg_advisory_xact_lock(571744, hashtext($1))';

/** One array for each column but the last. */
const claimAll = `INSERT INTO ledger_reservations
    (id, key_id, micro_dollars, tokens, day, month, allotment, free_micro_dollars, free_tokens, lease, expires)
  SELECT *, ${clock} + lease FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
      $8::bigint[], $9::bigint[], $10::bigint[])
    AS given (id, key_id, micro_dollars, tokens, day, month, allotment, free_micro_dollars, free_tokens, lease)
  ON CONFLICT (id) DO UPDATE SET
    micro_dollars = excluded.micro_dollars, tokens = excluded.tokens, allotment = excluded.allotment,
    free_micro_dollars = excluded.free_micro_dollars, free_tokens = excluded.free_tokens, lease = excluded.lease, expires = excluded.expires`;

/** Locks rows in one order, because statements that lock several of them in different orders could wait for each other. */
const lockedBy = (condition: string): string =>
  `WITH locked AS (SELECT id FROM ledger_reservations WHERE ${condition} ORDER BY id FOR UPDATE)`;
const byIds = lockedBy('id = ANY($1::text[])');

const renewal = `${byIds} UPDATE ledger_reservations SET expires = ${clock} + lease WHERE id IN (SELECT id FROM locked) AND expires > ${clock} RETURNING id`;

/** Adds all rows at once, in the order in which they are given. */
const charge = `INSERT INTO ledger_spent (key_id, period, since, micro_dollars, tokens)
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
  ON CONFLICT (key_id, period, since) DO UPDATE SET
    micro_dollars = ledger_spent.micro_dollars + excluded.micro_dollars, tokens = ledger_spent.tokens + excluded.tokens`;

/** One array each of ids, micro-dollars, tokens and what is free of both: what is taken off allotments, and what they are to hold. */
const given = `FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
  AS given (id, micro_dollars, tokens, free_micro_dollars, free_tokens) WHERE held.id = given.id AND held.id IN (SELECT id FROM locked)`;
const draw = `${byIds} UPDATE ledger_reservations AS held SET
  micro_dollars = greatest(0, held.micro_dollars - given.micro_dollars), tokens = greatest(0, held.tokens - given.tokens),
  free_micro_dollars = least(given.free_micro_dollars, greatest(0, held.micro_dollars - given.micro_dollars)),
  free_tokens = least(given.free_tokens, greatest(0, held.tokens - given.tokens)) ${given}`;
const resize = `${byIds} UPDATE ledger_reservations AS held SET
  micro_dollars = least(held.micro_dollars, given.micro_dollars), tokens = least(held.tokens, given.tokens),
  free_micro_dollars = given.free_micro_dollars, free_tokens = given.free_tokens, allotment = 0 ${given}`;
const recall = `${lockedBy('key_id = $1 AND allotment = 1')} UPDATE ledger_reservations SET allotment = 2
  WHERE id IN (SELECT id FROM locked) AND allotment = 1 AND expires > ${clock}`;
const isRecalled = `SELECT 1 FROM ledger_reservations WHERE key_id = $1 AND allotment = 2 AND expires > ${clock} LIMIT 1`;
const recalled = 'SELECT id FROM ledger_reservations WHERE allotment = 2';

/** A call that waits for its claim. */
interface Waiting {
  readonly budgets: readonly Budget[];
  /** The first of these that fits: the most that the call may come to, and what it can be held to. */
  readonly amounts: readonly [Amounts, ...Amounts[]];
  readonly wanted: Amounts | undefined;
  readonly lease: number;
  /** Nobody waits any longer. */
  over: boolean;
  readonly resolve: (claim: Reservation) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The ledger on Postgres. Claims on a key are made one after the other by all gateways, those of one gateway that wait together with one
 * transaction. Settlements need no place in that line: a claim looks at what is spent and reserved with one statement, which sees a
 * settlement as a whole or not at all.
 */
export function openPostgresLedger(database: PostgresDatabase): Ledger {
  const kinds = new Kinds();
  /** By key: what waits for the transaction under way. */
  const lines = new Map<string, Waiting[]>();

  const standingOf = (session: PostgresSession, keyId: string, now: number) =>
    session.query(standing, [keyId, periodStart('day', now), periodStart('month', now)]);

  /** What became of each: a claim, or why there is none. */
  const claim = (keyId: string, together: readonly Waiting[]): Promise<readonly (Reservation | Error)[]> =>
    database.transaction(async (session) => {
      await session.query(inLine, [keyId]);
      const now = Date.now();
      const rows = await standingOf(session, keyId, now);
      let microDollars = 0;
      let tokens = 0;
      const claims: Reservation[] = [];
      let isShort = false;
      const outcomes = together.map(({ budgets, amounts, lease, wanted }) => {
        const states = statesOf(budgets, rows, now).map((state) => ({
          ...state,
          reserved: state.reserved + counted(state.unit, { microDollars, tokens }),
        }));
        const fitting = firstThatFits(states, amounts, now);
        const [most] = amounts;
        isShort ||= fitting !== most;
        if (fitting instanceof BudgetExhausted) return fitting;
        const reservation = reservationOf({ keyId, states, fitting, most, lease, wanted }, now);
        const held = sum(fitting, reservation.ahead ?? none);
        microDollars += held.microDollars;
        tokens += held.tokens;
        claims.push(reservation);
        return reservation;
      });
      if (claims.length > 0) await session.query(claimAll, claimColumns(claims, now));
      if (isShort) {
        await session.query(recall, [keyId]);
        const recalls = (await session.query(isRecalled, [keyId])).length > 0;
        for (const outcome of outcomes) if (outcome instanceof BudgetExhausted) outcome.recalls = recalls;
      }
      return outcomes;
    });

  /** Serves a key's line until nobody stands in it. */
  const serve = async (keyId: string, line: Waiting[]): Promise<void> => {
    while (line.length > 0) {
      const together = line.splice(0, mostTogether).filter(({ over }) => !over);
      if (together.length === 0) continue;
      try {
        const outcomes = await claim(keyId, together);
        const late: string[] = [];
        for (const [index, waiting] of together.entries()) {
          const outcome = outcomes[index];
          if (outcome === undefined || outcome instanceof Error) waiting.reject(outcome);
          else if (waiting.over) late.push(outcome.id);
          else waiting.resolve(outcome);
        }
        // What cannot be given back now is swept when its lease is over.
        if (late.length > 0) await database.query(giveBack, [late]).catch(() => {});
      } catch (error) {
        for (const waiting of together) waiting.reject(error);
      }
    }
    lines.delete(keyId);
  };

  return {
    async reserve(keyId, budgets, most, lease = 60_000, less = undefined, wanted = undefined) {
      const amounts: Waiting['amounts'] =
        less === undefined ? [checked(most)] : [checked(most), checked(less)];
      const { promise, resolve, reject } = Promise.withResolvers<Reservation>();
      const waiting: Waiting = { budgets, amounts, wanted, lease, over: false, resolve, reject };
      const line = lines.get(keyId);
      if (line !== undefined) line.push(waiting);
      else {
        const begun = [waiting];
        lines.set(keyId, begun);
        void serve(keyId, begun);
      }
      const timer = setTimeout(
        () => reject(new Error('The database did not answer in time.')),
        database.patience,
      );
      try {
        return await promise;
      } finally {
        waiting.over = true;
        clearTimeout(timer);
      }
    },
    giveBack: ({ resized, ended }) =>
      database.transaction(async (session) => {
        if (resized.length > 0) await session.query(resize, drawColumns(resized));
        if (ended.length > 0) await session.query(giveBack, [ended]);
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
        if (renewed.length > 0) await session.query(claimAll, claimColumns(renewed, Date.now()));
        if (released.length > 0) await session.query(giveBack, [released]);
        return true;
      }),
    async release(reservations) {
      await database.query(giveBack, [reservations]);
    },
    async renew(reservations) {
      const rows = await database.query(renewal, [reservations.map(({ id }) => id)]);
      const kept = new Set(rows.map(({ id }) => id));
      const lost = reservations.filter(({ id }) => !kept.has(id));
      if (lost.length > 0) await database.query(claimAll, claimColumns(lost, Date.now()));
      return lost.map(({ id }) => id);
    },
    async sweep() {
      return (await database.query(`DELETE FROM ledger_reservations WHERE expires <= ${clock} RETURNING id`))
        .length;
    },
    async states(keyId, budgets) {
      const now = Date.now();
      return statesOf(budgets, await standingOf(database, keyId, now), now);
    },
  };
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
  if (draws.length > 0) await session.query(draw, drawColumns(draws));
  const ids = settlements.flatMap(({ reservation }) => reservation ?? []);
  if (ids.length > 0) await session.query(giveBack, [ids]);
}

/** Claims as one array for each column; those whose ids do not tell when they were made were made at `now`. */
function claimColumns(claims: readonly Reservation[], now: number) {
  const made = claims.map(({ id }) => reservedAt(id) ?? now);
  return [
    claims.map(({ id }) => id),
    claims.map(({ keyId }) => keyId),
    claims.map(({ most, ahead = none }) => most.microDollars + ahead.microDollars),
    claims.map(({ most, ahead = none }) => most.tokens + ahead.tokens),
    made.map((at) => periodStart('day', at)),
    made.map((at) => periodStart('month', at)),
    claims.map(({ ahead }) => (ahead === undefined ? 0 : 1)),
    claims.map(({ ahead = none }) => ahead.microDollars),
    claims.map(({ ahead = none }) => ahead.tokens),
    claims.map(({ lease }) => lease),
  ];
}

/** Allotments as one array for each column. */
function drawColumns(draws: readonly AllotmentDraw[]) {
  return [
    draws.map(({ id }) => id),
    draws.map(({ amounts }) => amounts.microDollars),
    draws.map(({ amounts }) => amounts.tokens),
    draws.map(({ free }) => free.microDollars),
    draws.map(({ free }) => free.tokens),
  ];
}

/** Rows as one array for each column. */
function columns(rows: readonly ChargeRow[]) {
  return [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column as 0 | 1 | 2 | 3 | 4]));
}
