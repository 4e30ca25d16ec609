/** Keeps in the database what providers keep for keys, and what is still to be charged for it. */
import { parseObject } from '../../json/parse.ts';
import { isObject } from '../../model/json.ts';
import type { ObjectCharge, ProviderObject } from '../../model/provider-objects.ts';
import { row, rows, sqlOf, type Row, type SqlValue, type Work } from '../../state/database/sql.ts';
import type { ReportError, Stores } from '../../state/stores.ts';
import type { Ledger } from '../ledger/index.ts';
import type { ObjectStore } from './index.ts';

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
