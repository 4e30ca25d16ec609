/** Records as rows, and how they are written in a transaction of the caller. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Row } from './read-rows.ts';
import { attemptNames, attemptRows } from './attempt-rows.ts';
import { ownersInsertion, ownersOf, ownersRowsInsertion, unwrittenOwners, type Owners } from './owners.ts';
import { kindInsertion, Kinds, kindsInsertion, rowOfKind, unwritten, type Kind } from './kinds.ts';
import { clean, text, whole } from './values.ts';

type Value = string | number | null;

/** Columns of `usage_records`, and how a record fills them. */
const columns: Readonly<Record<string, (record: UsageRecord) => Value>> = {
  at: ({ at }) => whole(at),
  id: ({ id }) => id,
  key_id: ({ keyId }) => text(keyId),
  ip: ({ ip }) => text(ip) ?? '',
  operation: ({ operation }) => operation,
  format: ({ format }) => format,
  upstream_format: ({ upstreamFormat }) => text(upstreamFormat),
  model: ({ model }) => text(model) ?? '',
  upstream_model: ({ upstreamModel }) => text(upstreamModel),
  channel: ({ channel }) => text(channel),
  stream: ({ stream }) => Number(stream),
  pass_through: ({ passThrough }) => flag(passThrough),
  status: ({ status }) => whole(status),
  code: ({ code }) => text(code),
  ended: ({ ended }) => ended,
  input: ({ input }) => whole(input),
  output: ({ output }) => whole(output),
  cache_read: ({ cacheRead }) => whole(cacheRead),
  cache_write: ({ cacheWrite }) => whole(cacheWrite),
  reasoning: ({ reasoning }) => whole(reasoning),
  estimated: ({ estimated }) => flag(estimated),
  micro_dollars: ({ microDollars }) => (microDollars === undefined ? null : whole(microDollars)),
  ms: ({ ms }) => time(ms) ?? 0,
  first_ms: ({ firstMs }) => time(firstMs),
  gateway_ms: ({ gatewayMs }) => time(gatewayMs),
  ms_bin: ({ ms }) => binOf(time(ms) ?? 0),
  first_bin: ({ firstMs }) => {
    const first = time(firstMs);
    return first === null ? null : binOf(first);
  },
  tags: ({ tags }) => (tags === undefined || tags.length === 0 ? null : tagText(tags)),
  end_user: ({ endUser }) => text(endUser),
};

/** Columns that rows with a kind leave empty. */
const emptyColumns: Readonly<Record<string, Value>> = {
  operation: '',
  format: '',
  upstream_format: null,
  model: '',
  upstream_model: null,
  channel: null,
  code: null,
  ended: '',
};

const ownColumns = Object.entries(columns).filter(([name]) => !(name in emptyColumns));
const kindColumns = Object.entries(columns).filter(([name]) => name in emptyColumns);

const names = [...Object.keys(columns), 'kind', 'owners', 'details'];
const fillings = Object.entries(columns).map(([name, fill]) => ({ fill, empty: emptyColumns[name] }));
const detailNames = ['at', 'id', 'details', 'request', 'response'] as const;

/** Columns to select for `recordOf`, of `usage_calls` as `u`; the details of `usage_details` as `d` come beside them. */
export const recordColumns = [
  ...Object.keys(columns)
    .filter((name) => !name.endsWith('_bin'))
    .map((name) => `u.${name}`),
  'u.price',
  'u.team',
  'u.member',
  'u.organisation',
  'COALESCE(u.details, d.details) AS details',
].join(', ');

/** Returns the kind of a record; undefined where it is to be written with the row. */
function kindOf(record: UsageRecord, kinds: Kinds): Kind | undefined {
  const values = kindColumns.map(([, fill]) => fill(record) as string | null);
  values.push(record.price === undefined ? null : clean(JSON.stringify(record.price)));
  return kinds.of(values);
}

const statements = new WeakMap<
  DatabaseSync,
  {
    readonly kinds: Kinds;
    readonly kind: StatementSync;
    readonly owners: StatementSync;
    readonly record: StatementSync;
    readonly details: StatementSync;
    readonly attempts: StatementSync;
  }
>();

/**
 * Writes records; belongs inside the transaction that charges for them. Returns the ids of those that were not there before: a record that
 * is written again changes nothing.
 */
export function insertRecordsInSqlite(
  connection: DatabaseSync,
  records: readonly UsageRecord[],
): ReadonlySet<string> {
  let prepared = statements.get(connection);
  if (prepared === undefined) {
    const insert = (table: string, into: readonly string[]): StatementSync =>
      connection.prepare(
        `INSERT INTO ${table} (${into.join(', ')}) VALUES (${into.map(() => '?').join(', ')}) ON CONFLICT DO NOTHING`,
      );
    prepared = {
      kinds: new Kinds(),
      kind: connection.prepare(kindInsertion),
      owners: connection.prepare(ownersInsertion),
      record: insert('usage_records', names),
      details: insert('usage_details', detailNames),
      attempts: insert('usage_attempts', attemptNames),
    };
    statements.set(connection, prepared);
  }
  const { kinds } = prepared;
  const ofRecords = records.map((record) => kindOf(record, kinds));
  for (const kind of unwritten(ofRecords)) {
    const { changes } = prepared.kind.run(kind.id, ...kind.values, kinds.today);
    if (changes === 0) kind.isThere = true;
  }
  const ownersOfRecords = records.map((record) => ownersOf(record, kinds));
  for (const { id, values } of unwrittenOwners(ownersOfRecords)) {
    const { changes } = prepared.owners.run(id, ...values, kinds.today);
    if (changes === 0) kinds.owners.add(id);
  }
  const added = new Set<string>();
  const values: Value[] = [];
  for (const [index, record] of records.entries()) {
    const kind = ofRecords[index];
    for (let column = 0; column < fillings.length; column += 1) {
      const filling = fillings[column];
      values[column] =
        kind !== undefined && filling?.empty !== undefined ? filling.empty : (filling?.fill(record) ?? null);
    }
    const details = detailsOf(record, kind !== undefined);
    values[fillings.length] = kind?.id ?? null;
    values[fillings.length + 1] = ownersOfRecords[index]?.id ?? null;
    values[fillings.length + 2] = details;
    if (prepared.record.run(...values).changes === 0) continue;
    added.add(record.id);
    const bodies = bodiesOf(record);
    if (bodies !== undefined) prepared.details.run(...detailNames.map((name) => bodies[name] ?? null));
    for (const row of attemptRows(record)) prepared.attempts.run(...attemptNames.map((name) => row[name]));
  }
  return added;
}

/** Connection for {@link insertRecordsInPostgres}, inside a transaction. */
export interface QueryingSession {
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/**
 * As {@link insertRecordsInSqlite}, in few questions however many records there are. `kinds`: those of the database, where the caller writes
 * more than once.
 */
export async function insertRecordsInPostgres(
  session: QueryingSession,
  records: readonly UsageRecord[],
  kinds = new Kinds(),
): Promise<ReadonlySet<string>> {
  const insert = (table: string): string =>
    `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json) ON CONFLICT DO NOTHING RETURNING id`;
  const ofRecords = records.map((record) => kindOf(record, kinds));
  const made = unwritten(ofRecords);
  if (made.length > 0) {
    const rows = made.map(({ id, values }) => rowOfKind(id, values, kinds.today));
    const changed = await session.query(kindsInsertion, [JSON.stringify(rows)]);
    const ids = new Set(changed.map(({ id }) => Number(id)));
    for (const kind of made) if (!ids.has(kind.id)) kind.isThere = true;
  }
  const ownersOfRecords = records.map((record) => ownersOf(record, kinds));
  const owners = unwrittenOwners(ownersOfRecords);
  if (owners.length > 0) await writeOwners(session, owners, kinds);
  const rows = records.map((record, index) => {
    const kind = ofRecords[index];
    const row: Record<string, string | number> = {};
    const add = (name: string, value: Value): void => {
      if (value !== null) row[name] = value;
    };
    for (const [name, fill] of ownColumns) add(name, fill(record));
    for (const [name, fill] of kindColumns)
      add(name, kind === undefined ? fill(record) : (emptyColumns[name] ?? null));
    add('kind', kind?.id ?? null);
    add('owners', ownersOfRecords[index]?.id ?? null);
    add('details', detailsOf(record, kind !== undefined));
    return row;
  });
  const ids = await session.query(insert('usage_records'), [JSON.stringify(rows)]);
  const added = new Set(ids.map(({ id }) => String(id)));
  const bodies = records.flatMap((record) => (added.has(record.id) ? (bodiesOf(record) ?? []) : []));
  if (bodies.length > 0) await session.query(insert('usage_details'), [JSON.stringify(bodies)]);
  const attempts = records.flatMap((record) => (added.has(record.id) ? attemptRows(record) : []));
  if (attempts.length > 0) await session.query(insert('usage_attempts'), [JSON.stringify(attempts)]);
  return added;
}

async function writeOwners(session: QueryingSession, owners: readonly Owners[], kinds: Kinds): Promise<void> {
  const rows = owners.map(({ id, values: [team, member, organisation] }) => ({
    id,
    team,
    member,
    organisation,
    last_day: kinds.today,
  }));
  const changed = await session.query(ownersRowsInsertion, [JSON.stringify(rows)]);
  const ids = new Set(changed.map(({ id }) => Number(id)));
  for (const { id } of owners) if (!ids.has(id)) kinds.owners.add(id);
}

/**
 * Returns the details of a record as JSON. The price is part of the record's kind, where it has one. The charge is the last member, where
 * `usage-charges.ts` of the tables finds it.
 */
function detailsOf(record: UsageRecord, hasKind: boolean): string | null {
  const { reason, cause, price, losses, attempts, units, chargedMicroDollars } = record;
  const more = {
    reason,
    cause,
    price: hasKind ? undefined : price,
    losses,
    attempts,
    units,
    chargedMicroDollars: chargedMicroDollars === undefined ? undefined : whole(chargedMicroDollars),
  };
  for (const name in more)
    if (more[name as keyof typeof more] !== undefined) return clean(JSON.stringify(more));
  return null;
}

/** The row of its captured bodies. */
function bodiesOf({
  at,
  id,
  request,
  response,
}: UsageRecord): Partial<Record<(typeof detailNames)[number], string | number>> | undefined {
  if (request === undefined && response === undefined) return undefined;
  return {
    at: whole(at),
    id,
    ...(request === undefined ? {} : { request: clean(request) }),
    ...(response === undefined ? {} : { response: clean(response) }),
  };
}

/** Maximum number of tags that a record keeps. */
const maxTags = 20;

function tagText(tags: readonly string[]): string {
  const kept = [...new Set(tags.map((tag) => text(tag) ?? ''))].filter((tag) => tag !== '');
  return JSON.stringify(kept.slice(0, maxTags));
}

/** Bins of a logarithmic scale, four percent wide: a percentile that is read off them is wrong by two percent at most. */
const perUnit = 25;

function binOf(ms: number): number {
  return Math.round(Math.log1p(ms) * perUnit);
}

/** The middle of a bin, in milliseconds. */
export function middleOf(bin: number): number {
  return Math.expm1(bin / perUnit);
}

function time(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.max(0, value);
}

function flag(value: boolean | undefined): number | null {
  return value === undefined ? null : Number(value);
}
