import { isObject, parseObject, type JsonObject } from '../model/json.ts';
import type { ObjectCharge, ProviderObject } from '../model/provider-objects.ts';
import type { Ledger, Reservation, Settlement } from './ledger/index.ts';
import { row, rows, sqlOf, type Row, type SqlValue, type Work } from '../state/database/sql.ts';
import type { ReportError, Stores } from '../state/stores.ts';

/** Which objects of an owner and a kind are wanted. `after` and `before` are ids that the page follows, or stands in front of. */
export interface ObjectQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly after?: string;
  readonly before?: string;
}

/** A page of objects. */
export interface ObjectPage {
  readonly objects: readonly ProviderObject[];
  readonly hasMore: boolean;
}

/** Who asks providers about what is to be charged: the name is nobody else's, and the claim is over after so many milliseconds. */
export interface ObjectLease {
  readonly name: string;
  readonly milliseconds: number;
}

/** What is charged for a new object. */
export interface NewCharges {
  /** When its provider is to be asked first, for what is to be charged later. */
  readonly askAt?: number;
  /** What is claimed for that; its lease becomes the one given here. */
  readonly reservation?: Reservation;
  /** What is charged now. */
  readonly settlements?: readonly Settlement[];
}

/**
 * What providers keep for keys, in the database, for all gateways that share it. A write is durable when its promise resolves. Whoever asks
 * with another owner finds nothing. Rejects when the database fails.
 */
export interface ObjectStore {
  /**
   * Keeps a new object. One of the same owner and id is kept as it is; another owner's at the same place is forgotten, as the provider has
   * just given its id away. All of it is kept, charged and claimed, or nothing.
   */
  create(object: ProviderObject, charges?: NewCharges): Promise<void>;
  find(owner: string, kind: string, id: string): Promise<ProviderObject | undefined>;
  /** True when somebody has an object of this id. */
  isOwned(kind: string, id: string): Promise<boolean>;
  /** By the time at which they were made. Undefined when `after` or `before` names none of them. */
  list(owner: string, kind: string, query: ObjectQuery): Promise<ObjectPage | undefined>;
  /** Keeps what its provider says of it now, and what else is known now. */
  see(object: ProviderObject, seen: JsonObject, known?: JsonObject): Promise<void>;
  /** Replaces one by what it is now, or removes it, and charges what that costs: false, and nothing is done, when it was changed meanwhile. */
  change(
    object: ProviderObject,
    now: ProviderObject | undefined,
    settlements: readonly Settlement[],
  ): Promise<boolean>;
  /** False when there was none. */
  remove(object: ProviderObject): Promise<boolean>;
  /** Takes objects whose providers are to be asked now and that nobody else asks about; the longest due come first. */
  claim(lease: ObjectLease, limit: number): Promise<readonly ProviderObject[]>;
  /** Takes one, due or not; undefined when it is charged, or somebody else asks about it now. */
  claimOne(lease: ObjectLease, object: ProviderObject): Promise<ProviderObject | undefined>;
  /** Writes what is new of one that is still to be charged, and lets go of it: false when another has claimed it meanwhile. */
  later(lease: ObjectLease, object: ProviderObject, askAt: number): Promise<boolean>;
  /**
   * Charges one, once, gives back what is claimed for it, and keeps what it has left behind: false when it was charged already, and then
   * nothing is written.
   */
  settle(
    object: ProviderObject,
    settlements: readonly Settlement[],
    left: readonly ProviderObject[],
  ): Promise<boolean>;
}

const columns = 'owner, kind, id, channel, account, created, details';

/** Longer descriptions are not kept, in characters: whoever wants one asks the provider. */
const longestSeen = 64 * 1024;

/** Opens what the gateway's database knows of providers' objects. */
export function openObjectStore(
  { stores, ledger }: { readonly stores: Pick<Stores, 'database'>; readonly ledger: Ledger },
  report: ReportError,
): ObjectStore {
  const sql = sqlOf(stores.database);
  const readAll = (found: readonly Row[]): readonly ProviderObject[] =>
    found.flatMap((one) => objectOf(one, report) ?? []);
  const single = async (work: () => Work<Row | undefined>): Promise<ProviderObject | undefined> => {
    const found = await sql.run(work);
    return found === undefined ? undefined : objectOf(found, report);
  };

  return {
    async create(object, { askAt, reservation, settlements = [] } = {}) {
      const create = function* (): Work<boolean> {
        yield* insert(object, askAt);
        return true;
      };
      const renewed = reservation === undefined ? [] : [reservation];
      if (renewed.length + settlements.length === 0) await sql.atomically(create);
      else await ledger.settleAfter(settlements, create, { renewed });
    },
    find: (owner, kind, id) =>
      single(() =>
        row(
          `SELECT ${columns} FROM provider_objects WHERE owner = ? AND kind = ? AND id = ?`,
          owner,
          kind,
          id,
        ),
      ),
    async isOwned(kind, id) {
      const found = await sql.run(() =>
        row('SELECT 1 AS found FROM provider_objects WHERE id = ? AND kind = ? LIMIT 1', id, kind),
      );
      return found !== undefined;
    },
    list: (owner, kind, query) =>
      sql.run(function* () {
        const { limit, after, before } = query;
        // What stands before a place is read backwards from it.
        const backwards = before !== undefined;
        const ascending = (query.order === 'asc') !== backwards;
        const named = before ?? after;
        const place = yield* placeOf(owner, kind, named);
        if (named !== undefined && place === undefined) return undefined;
        const [sign, order] = ascending ? ['>', 'ASC'] : ['<', 'DESC'];
        const values: SqlValue[] = [owner, kind, ...(place ?? []), limit + 1];
        const found = yield* rows(
          `SELECT ${columns} FROM provider_objects WHERE owner = ? AND kind = ?
            ${place === undefined ? '' : `AND (created, id) ${sign} (?, ?)`} ORDER BY created ${order}, id ${order} LIMIT ?`,
          ...values,
        );
        const page = readAll(found.slice(0, limit));
        return { objects: backwards ? page.toReversed() : page, hasMore: found.length > limit };
      }),
    async see(object, seen, known = object.known) {
      await sql.run(() =>
        rows(
          'UPDATE provider_objects SET details = ? WHERE owner = ? AND kind = ? AND id = ? AND details = ? RETURNING id',
          detailsOf({ ...object, seen, known }),
          object.owner,
          object.kind,
          object.id,
          // Who changed it meanwhile has asked the provider too.
          detailsOf(object),
        ),
      );
    },
    change: (object, now, settlements) =>
      ledger.settleAfter(settlements, function* () {
        const { owner, kind, id } = object;
        const found =
          now === undefined
            ? yield* row(
                'DELETE FROM provider_objects WHERE owner = ? AND kind = ? AND id = ? AND details = ? RETURNING id',
                owner,
                kind,
                id,
                detailsOf(object),
              )
            : yield* row(
                'UPDATE provider_objects SET details = ? WHERE owner = ? AND kind = ? AND id = ? AND details = ? RETURNING id',
                detailsOf(now),
                owner,
                kind,
                id,
                detailsOf(object),
              );
        return found !== undefined;
      }),
    async remove({ owner, kind, id }) {
      const gone = await sql.run(() =>
        row(
          'DELETE FROM provider_objects WHERE owner = ? AND kind = ? AND id = ? RETURNING id',
          owner,
          kind,
          id,
        ),
      );
      return gone !== undefined;
    },
    async claim({ name, milliseconds }, limit) {
      const now = Date.now();
      // Most times there is nothing: a look needs no lock.
      const due = 'ask_at IS NOT NULL AND ask_at <= ? AND lease_until <= ?';
      const found = await sql.run(function* () {
        const first = yield* row(`SELECT 1 AS due FROM provider_objects WHERE ${due} LIMIT 1`, now, now);
        if (first === undefined) return [];
        return yield* rows(
          `UPDATE provider_objects SET lease = ?, lease_until = ? WHERE (owner, kind, id) IN
            (SELECT owner, kind, id FROM provider_objects WHERE ${due} ORDER BY ask_at LIMIT ?${sql.forUpdateOfFree}) RETURNING ${columns}`,
          name,
          now + milliseconds,
          now,
          now,
          limit,
        );
      });
      return readAll(found);
    },
    claimOne({ name, milliseconds }, { owner, kind, id }) {
      const now = Date.now();
      return single(() =>
        row(
          `UPDATE provider_objects SET lease = ?, lease_until = ? WHERE owner = ? AND kind = ? AND id = ? AND ask_at IS NOT NULL
            AND lease_until <= ? RETURNING ${columns}`,
          name,
          now + milliseconds,
          owner,
          kind,
          id,
          now,
        ),
      );
    },
    async later({ name }, object, askAt) {
      const done = await sql.run(() =>
        row(
          `UPDATE provider_objects SET details = ?, ask_at = ?, lease_until = 0
            WHERE owner = ? AND kind = ? AND id = ? AND ask_at IS NOT NULL AND lease = ? RETURNING id`,
          detailsOf(object),
          askAt,
          object.owner,
          object.kind,
          object.id,
          name,
        ),
      );
      return done !== undefined;
    },
    settle: ({ charge, ...object }, settlements, left) => {
      const settle = function* (): Work<boolean> {
        const done = yield* row(
          `UPDATE provider_objects SET details = ?, ask_at = NULL, lease_until = 0
            WHERE owner = ? AND kind = ? AND id = ? AND ask_at IS NOT NULL RETURNING id`,
          detailsOf(object),
          object.owner,
          object.kind,
          object.id,
        );
        if (done === undefined) return false;
        for (const one of left) yield* insert(one, undefined);
        return true;
      };
      const claim = charge?.reservation;
      return ledger.settleAfter(settlements, settle, claim === undefined ? {} : { released: [claim] });
    },
  };
}

function* insert(object: ProviderObject, askAt: number | undefined): Work<void> {
  const { owner, kind, id, channel, key, createdAt } = object;
  yield* rows(
    'DELETE FROM provider_objects WHERE id = ? AND kind = ? AND channel = ? AND account = ? AND owner <> ? RETURNING id',
    id,
    kind,
    channel,
    key,
    owner,
  );
  yield* rows(
    `INSERT INTO provider_objects (${columns}, ask_at, lease, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0)
      ON CONFLICT (owner, kind, id) DO NOTHING RETURNING id`,
    owner,
    kind,
    id,
    channel,
    key,
    createdAt,
    detailsOf(object),
    askAt ?? null,
  );
}

function* placeOf(
  owner: string,
  kind: string,
  id: string | undefined,
): Work<readonly [number, string] | undefined> {
  if (id === undefined) return undefined;
  const found = yield* row(
    'SELECT created FROM provider_objects WHERE owner = ? AND kind = ? AND id = ?',
    owner,
    kind,
    id,
  );
  return found === undefined ? undefined : [Number(found['created']), id];
}

function detailsOf({ seen, known, charge }: ProviderObject): string {
  const told = JSON.stringify(seen);
  const kept = told.length <= longestSeen ? seen : {};
  return JSON.stringify({ seen: kept, known, ...(charge === undefined ? {} : { charge }) });
}

function objectOf(found: Row, report: ReportError): ProviderObject | undefined {
  const { seen, known, charge } = parseObject(String(found['details'])) ?? {};
  const text = (name: string): string => String(found[name]);
  if (!isObject(seen) || !isObject(known)) {
    report(new Error(`${text('kind')} ${text('id')} is damaged in the database and counts as missing.`));
    return undefined;
  }
  return {
    owner: text('owner'),
    kind: text('kind'),
    id: text('id'),
    channel: text('channel'),
    key: text('account'),
    createdAt: Number(found['created']),
    seen,
    known,
    ...(isObject(charge) ? { charge: charge as unknown as ObjectCharge } : {}),
  };
}
