/** The claims of one table in Postgres: those on budgets of keys, or those on budgets of their owners. */
import type { PostgresSession } from '../../state/database/postgres.ts';
import { none } from './amounts.ts';
import type { AllotmentDraw, AllotmentReturns, Reservation } from './index.ts';
import { periodStart, reservedAt } from './periods.ts';
import { ownerClaims, standingAt, windowsAt, type ReservationTable, type StandingRow } from './sql.ts';
import type { ChargeRow } from './charge-sums.ts';
import type { Window } from './windows.ts';

/** Leases are measured by the server's clock alone: those of gateways may differ from it and from each other. */
const clock = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** A transaction, or the database itself for single statements. */
export type Asking = Pick<PostgresSession, 'query'>;

/** Reads and writes reservations. Does not begin transactions. */
export class PostgresReservations {
  readonly #isOfOwners: boolean;
  readonly #standing: string;
  readonly #windows: string;
  readonly #insertSql: string;
  readonly #giveBack: string;
  readonly #draw: string;
  readonly #resize: string;
  readonly #recall: string;
  readonly #isRecalled: string;
  readonly #renew: string;
  readonly #sweep: string;

  constructor(claims: ReservationTable) {
    const { table, holder } = claims;
    this.#isOfOwners = claims === ownerClaims;
    const identity = this.#isOfOwners ? `id, ${holder}` : 'id';
    /** Locks rows in one order, because statements that lock several of them in different orders could wait for each other. */
    const lockedBy = (condition: string): string =>
      `WITH locked AS (SELECT id FROM ${table} WHERE ${condition} ORDER BY ${identity} FOR UPDATE)`;
    const byIds = lockedBy('id = ANY($1::text[])');
    /** One array each of ids, micro-dollars, tokens and what is free of both: what is taken off allotments, and what they are to hold. */
    const given = `FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
      AS given (id, micro_dollars, tokens, free_micro_dollars, free_tokens) WHERE held.id = given.id AND held.id IN (SELECT id FROM locked)`;
    this.#standing = standingAt(claims, {
      holders: '= ANY($1::text[])',
      day: '$2',
      month: '$3',
      now: clock,
    });
    this.#windows = windowsAt(claims, {
      requested:
        'SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS given (holder, series, label, since)',
      now: clock,
    });
    // One array for each column but the last.
    this.#insertSql = `INSERT INTO ${table}
        (id, ${holder}, micro_dollars, tokens, day, month, made, allotment, free_micro_dollars, free_tokens, lease, expires)
      SELECT *, ${clock} + lease FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
          $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        AS given (id, ${holder}, micro_dollars, tokens, day, month, made, allotment, free_micro_dollars, free_tokens, lease)
      ON CONFLICT (${identity}) DO UPDATE SET
        micro_dollars = excluded.micro_dollars, tokens = excluded.tokens, allotment = excluded.allotment,
        free_micro_dollars = excluded.free_micro_dollars, free_tokens = excluded.free_tokens, lease = excluded.lease, expires = excluded.expires`;
    this.#giveBack = `DELETE FROM ${table} WHERE id = ANY($1::text[])`;
    this.#draw = `${byIds} UPDATE ${table} AS held SET
      micro_dollars = greatest(0, held.micro_dollars - given.micro_dollars), tokens = greatest(0, held.tokens - given.tokens),
      free_micro_dollars = least(given.free_micro_dollars, greatest(0, held.micro_dollars - given.micro_dollars)),
      free_tokens = least(given.free_tokens, greatest(0, held.tokens - given.tokens)) ${given}`;
    this.#resize = `${byIds} UPDATE ${table} AS held SET
      micro_dollars = least(held.micro_dollars, given.micro_dollars), tokens = least(held.tokens, given.tokens),
      free_micro_dollars = given.free_micro_dollars, free_tokens = given.free_tokens, allotment = 0 ${given}`;
    this.#recall = `${lockedBy(`${holder} = ANY($1::text[]) AND allotment = 1`)} UPDATE ${table} SET allotment = 2
      WHERE id IN (SELECT id FROM locked) AND ${holder} = ANY($1::text[]) AND allotment = 1 AND expires > ${clock}`;
    this.#isRecalled = `SELECT DISTINCT ${holder} AS holder FROM ${table} WHERE ${holder} = ANY($1::text[]) AND allotment = 2 AND expires > ${clock}`;
    this.#renew = `${byIds} UPDATE ${table} SET expires = ${clock} + lease WHERE id IN (SELECT id FROM locked) AND expires > ${clock} RETURNING id`;
    this.#sweep = `DELETE FROM ${table} WHERE expires <= ${clock} RETURNING id`;
  }

  /** Returns what holders have spent and reserved. */
  async standing(session: Asking, holders: readonly string[], now: number): Promise<readonly StandingRow[]> {
    if (holders.length === 0) return [];
    return session.query(this.#standing, [holders, periodStart('day', now), periodStart('month', now)]);
  }

  /** Returns what these holders have spent and reserved in windows of their own. */
  async windows(
    session: Asking,
    holders: readonly string[],
    windows: readonly Window[],
  ): Promise<readonly StandingRow[]> {
    const requested = windows.filter(({ holder }) => holders.includes(holder));
    if (requested.length === 0) return [];
    return session.query(this.#windows, [
      requested.map(({ holder }) => holder),
      requested.map(({ series }) => series),
      requested.map(({ label }) => label),
      requested.map(({ since }) => since),
    ]);
  }

  /** Inserts reservations, or replaces those that exist. A reservation whose id does not hold its time counts as made at `now`. */
  async insert(session: Asking, reservations: readonly Reservation[], now: number): Promise<void> {
    const held = reservations.flatMap((one) =>
      (this.#isOfOwners ? (one.owners ?? []) : [one.keyId]).map((holder) => ({ holder, ...one })),
    );
    if (held.length === 0) return;
    const made = held.map(({ id }) => reservedAt(id) ?? now);
    await session.query(this.#insertSql, [
      held.map(({ id }) => id),
      held.map(({ holder }) => holder),
      held.map(({ most, ahead = none }) => most.microDollars + ahead.microDollars),
      held.map(({ most, ahead = none }) => most.tokens + ahead.tokens),
      made.map((at) => periodStart('day', at)),
      made.map((at) => periodStart('month', at)),
      made,
      held.map(({ ahead }) => (ahead === undefined ? 0 : 1)),
      held.map(({ ahead = none }) => ahead.microDollars),
      held.map(({ ahead = none }) => ahead.tokens),
      held.map(({ lease }) => lease),
    ]);
  }

  async giveBack(session: Asking, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await session.query(this.#giveBack, [ids]);
  }

  /** Takes what calls were charged off their allotments. */
  async draw(session: Asking, draws: readonly AllotmentDraw[]): Promise<void> {
    if (draws.length > 0) await session.query(this.#draw, drawColumns(draws));
  }

  /** Lowers allotments that serve no calls any more to what they still need. */
  async resize(session: Asking, resized: AllotmentReturns['resized']): Promise<void> {
    if (resized.length > 0) await session.query(this.#resize, drawColumns(resized));
  }

  /** Recalls the allotments of holders. Returns those holders of whom some were not given back yet. */
  async recall(session: Asking, holders: readonly string[]): Promise<readonly string[]> {
    if (holders.length === 0) return [];
    await session.query(this.#recall, [holders]);
    return (await session.query(this.#isRecalled, [holders])).map(({ holder }) => String(holder));
  }

  /** Moves the expiry of claims that have not run out. Returns the id of each, which for owners may come several times. */
  async renew(session: Asking, ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return [];
    return (await session.query(this.#renew, [ids])).map(({ id }) => String(id));
  }

  /** Removes expired claims; returns how many there were. */
  async sweep(session: Asking): Promise<number> {
    return (await session.query(this.#sweep, [])).length;
  }
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
export function columns(rows: readonly ChargeRow[]) {
  return [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column as 0 | 1 | 2 | 3 | 4]));
}
