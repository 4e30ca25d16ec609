/** Keeps in the database what providers keep for keys, and what is still to be charged for it. */
import { parseObject } from '../../json/parse.ts';
import { isObject } from '../../model/json.ts';
import type { ObjectCharge, ProviderObject } from '../../model/provider-objects.ts';
import { row, rows, type Row, type Work } from '../../state/database/sql.ts';
import type { ReportError, Stores } from '../../state/stores.ts';
import type { Ledger } from '../ledger/index.ts';
import { LeasedRows, type LeasedTable } from '../leased-rows.ts';
import type { ObjectStore } from './index.ts';

const table: LeasedTable = {
  name: 'provider_objects',
  key: ['owner', 'kind', 'id'],
  columns: 'owner, kind, id, channel, account, created, details',
  open: 'ask_at IS NOT NULL',
};

/** Longer descriptions are not kept, in characters: whoever wants one asks the provider. */
const longestSeen = 64 * 1024;

/** Opens what the gateway's database knows of providers' objects. */
export function openObjectStore(
  { stores, ledger }: { readonly stores: Pick<Stores, 'database'>; readonly ledger: Ledger },
  report: ReportError,
): ObjectStore {
  const kept = new LeasedRows(stores.database, table, (found) => objectOf(found, report));
  const { sql } = kept;
  return {
    async create(object, { pollAt, reservation, settlements = [] } = {}) {
      const create = function* (): Work<boolean> {
        yield* insert(object, pollAt);
        return true;
      };
      const renewed = reservation === undefined ? [] : [reservation];
      if (renewed.length + settlements.length === 0) await sql.atomically(create);
      else await ledger.settleAfter(settlements, create, { renewed });
    },
    find: (owner, kind, id) => kept.find(owner, kind, id),
    async isOwned(kind, id) {
      const found = await sql.run(() =>
        row('SELECT 1 AS found FROM provider_objects WHERE id = ? AND kind = ? LIMIT 1', id, kind),
      );
      return found !== undefined;
    },
    async list(owner, kind, query) {
      const page = await kept.page({ owner, kind }, query);
      return page && { objects: page.items, hasMore: page.hasMore };
    },
    async see(object, seen, known = object.known) {
      // Whoever has changed it meanwhile has asked the provider too.
      await sql.run(() => replace(object, { ...object, seen, known }));
    },
    change: (object, now, settlements) =>
      ledger.settleAfter(settlements, () => (now === undefined ? drop(object) : replace(object, now))),
    remove: (object) => kept.remove(...keyOf(object)),
    claim: (lease, limit) => kept.claim(lease, limit),
    claimOne: (lease, object) => kept.claimOne(lease, ...keyOf(object)),
    later: ({ name }, object, pollAt) =>
      sql.run(() => kept.release(keyOf(object), { details: detailsOf(object), ask_at: pollAt }, name)),
    settle: ({ charge, ...object }, settlements, left) => {
      const settle = function* (): Work<boolean> {
        const done = yield* kept.release(keyOf(object), { details: detailsOf(object), ask_at: null });
        if (!done) return false;
        for (const one of left) yield* insert(one, undefined);
        return true;
      };
      const reservation = charge?.reservation;
      return ledger.settleAfter(
        settlements,
        settle,
        reservation === undefined ? {} : { released: [reservation] },
      );
    },
  };
}

function keyOf({ owner, kind, id }: ProviderObject): readonly string[] {
  return [owner, kind, id];
}

const isUnchanged = 'owner = ? AND kind = ? AND id = ? AND details = ?';

/** Returns false when somebody has changed the object meanwhile. */
function* replace(object: ProviderObject, now: ProviderObject): Work<boolean> {
  const done = yield* row(
    `UPDATE provider_objects SET details = ? WHERE ${isUnchanged} RETURNING id`,
    detailsOf(now),
    ...keyOf(object),
    detailsOf(object),
  );
  return done !== undefined;
}

/** Removes an object. Returns false when somebody has changed it meanwhile. */
function* drop(object: ProviderObject): Work<boolean> {
  const done = yield* row(
    `DELETE FROM provider_objects WHERE ${isUnchanged} RETURNING id`,
    ...keyOf(object),
    detailsOf(object),
  );
  return done !== undefined;
}

function* insert(object: ProviderObject, pollAt: number | undefined): Work<void> {
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
    `INSERT INTO provider_objects (${table.columns}, ask_at, lease, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0)
      ON CONFLICT (owner, kind, id) DO NOTHING RETURNING id`,
    owner,
    kind,
    id,
    channel,
    key,
    createdAt,
    detailsOf(object),
    pollAt ?? null,
  );
}

function detailsOf({ seen, known, charge }: ProviderObject): string {
  const text = JSON.stringify(seen);
  const kept = text.length <= longestSeen ? seen : {};
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
