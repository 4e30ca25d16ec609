import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isObject, parseObject, type JsonObject } from '../../model/json.ts';
import type { UsageRecord } from '../../model/usage-record.ts';
import { attemptNames, attemptRows } from './attempt-rows.ts';
import { clean, text, whole } from './values.ts';

/** A row as the drivers give it; large whole numbers may come as texts. */
export type Row = Readonly<Record<string, unknown>>;

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
};

const names = Object.keys(columns);
const fillings = Object.values(columns);
const detailNames = ['at', 'id', 'details', 'request', 'response'] as const;

/** Columns to select for {@link recordOf}, of `usage_records` as `u`; the details of `usage_details` as `d` come beside them. */
export const recordColumns = names
  .filter((name) => !name.endsWith('_bin'))
  .map((name) => `u.${name}`)
  .join(', ');

const statements = new WeakMap<
  DatabaseSync,
  { readonly record: StatementSync; readonly details: StatementSync; readonly attempts: StatementSync }
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
      record: insert('usage_records', names),
      details: insert('usage_details', detailNames),
      attempts: insert('usage_attempts', attemptNames),
    };
    statements.set(connection, prepared);
  }
  const added = new Set<string>();
  const values: Value[] = [];
  for (const record of records) {
    for (let place = 0; place < fillings.length; place += 1)
      values[place] = fillings[place]?.(record) ?? null;
    if (prepared.record.run(...values).changes === 0) continue;
    added.add(record.id);
    const details = detailsOf(record);
    if (details !== undefined) prepared.details.run(...detailNames.map((name) => details[name]));
    for (const row of attemptRows(record)) prepared.attempts.run(...attemptNames.map((name) => row[name]));
  }
  return added;
}

/** What {@link insertRecordsInPostgres} needs of a connection: one that is inside a transaction. */
export interface QueryingSession {
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
}

/** As {@link insertRecordsInSqlite}, in few questions however many records there are. */
export async function insertRecordsInPostgres(
  session: QueryingSession,
  records: readonly UsageRecord[],
): Promise<ReadonlySet<string>> {
  const insert = (table: string): string =>
    `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json) ON CONFLICT DO NOTHING RETURNING id`;
  const rows = records.map((record) =>
    Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, value(record)])),
  );
  const ids = await session.query(insert('usage_records'), [JSON.stringify(rows)]);
  const added = new Set(ids.map(({ id }) => String(id)));
  const details = records.flatMap((record) => (added.has(record.id) ? (detailsOf(record) ?? []) : []));
  if (details.length > 0) await session.query(insert('usage_details'), [JSON.stringify(details)]);
  const attempts = records.flatMap((record) => (added.has(record.id) ? attemptRows(record) : []));
  if (attempts.length > 0) await session.query(insert('usage_attempts'), [JSON.stringify(attempts)]);
  return added;
}

function detailsOf(record: UsageRecord): Record<(typeof detailNames)[number], Value> | undefined {
  const { at, id, reason, cause, price, losses, attempts, units, request, response } = record;
  const more = [reason, cause, price, losses, attempts, units].some((one) => one !== undefined);
  if (!more && request === undefined && response === undefined) return undefined;
  return {
    at: whole(at),
    id,
    details: more ? clean(JSON.stringify({ reason, cause, price, losses, attempts, units })) : null,
    request: request === undefined ? null : clean(request),
    response: response === undefined ? null : clean(response),
  };
}

/** The record of a row. What was not selected is absent from it. */
export function recordOf(row: Row): UsageRecord {
  const word = (name: string): string | undefined => {
    const value = row[name];
    return value === null || value === undefined ? undefined : String(value);
  };
  const number = (name: string): number | undefined => {
    const value = row[name];
    return value === null || value === undefined ? undefined : Number(value);
  };
  const record = {
    id: word('id') ?? '',
    at: number('at') ?? 0,
    keyId: word('key_id'),
    ip: word('ip') ?? '',
    operation: word('operation') ?? '',
    format: word('format') ?? '',
    upstreamFormat: word('upstream_format'),
    model: word('model') ?? '',
    upstreamModel: word('upstream_model'),
    channel: word('channel'),
    stream: number('stream') === 1,
    passThrough: flagOf(number('pass_through')),
    status: number('status') ?? 0,
    code: word('code'),
    ended: (word('ended') ?? 'complete') as UsageRecord['ended'],
    input: number('input') ?? 0,
    output: number('output') ?? 0,
    cacheRead: number('cache_read') ?? 0,
    cacheWrite: number('cache_write') ?? 0,
    reasoning: number('reasoning') ?? 0,
    estimated: flagOf(number('estimated')),
    microDollars: number('micro_dollars'),
    ms: number('ms') ?? 0,
    firstMs: number('first_ms'),
    gatewayMs: number('gateway_ms'),
    ...told(parseObject(word('details') ?? '') ?? {}),
    request: word('request'),
    response: word('response'),
  };
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== undefined),
  ) as unknown as UsageRecord;
}

/** What of the details has the shape that it was written in. */
function told({ reason, cause, price, losses, attempts, units }: JsonObject): object {
  return {
    reason: typeof reason === 'string' ? reason : undefined,
    cause: isObject(cause) ? cause : undefined,
    price: isObject(price) ? price : undefined,
    units: isObject(units) ? units : undefined,
    losses: Array.isArray(losses) ? losses.filter((loss) => typeof loss === 'string') : undefined,
    attempts: Array.isArray(attempts) ? attempts.filter(isObject) : undefined,
  };
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

function flagOf(value: number | undefined): boolean | undefined {
  return value === undefined ? undefined : value === 1;
}
