/** Reads records out of rows. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';

/** A row as the drivers give it; large whole numbers may come as texts. */
export type Row = Readonly<Record<string, unknown>>;

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
  const members = {
    id: word('id') ?? '',
    at: number('at') ?? 0,
    keyId: word('key_id'),
    team: word('team'),
    member: word('member'),
    organisation: word('organisation'),
    tags: tagsOf(row['tags']),
    endUser: word('end_user'),
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
    ...shapedDetails(detailsIn(row)),
    request: word('request'),
    response: word('response'),
  };
  const record: Record<string, unknown> = {};
  for (const name in members) {
    const value = members[name as keyof typeof members];
    if (value !== undefined) record[name] = value;
  }
  return record as unknown as UsageRecord;
}

/**
 * Runs a SELECT of many columns or rows. PostgreSQL returns all rows as one text, because its driver takes several times as long for 200 records, or
 * for 5,000 groups, as they take to be parsed as JSON. Numbers are exact up to 2^53, as they are in records.
 */
export async function rowsOf(
  query: Query,
  kind: Database['kind'],
  sql: string,
  values: readonly (string | number)[],
): Promise<readonly Row[]> {
  if (kind === 'sqlite') return query(sql, values);
  const [row] = await query(
    `SELECT CAST(json_agg(selected) AS TEXT) AS rows_as_json FROM (${sql}) AS selected`,
    values,
  );
  return JSON.parse(String(row?.['rows_as_json'] ?? '[]')) as readonly Row[];
}

/** The details of a row, with the price of its kind. */
function detailsIn({ details, price }: Row): JsonObject {
  const own = (typeof details === 'string' ? parseObject(details) : undefined) ?? {};
  const priceOfKind = typeof price === 'string' ? parseObject(price) : undefined;
  return priceOfKind === undefined ? own : { ...own, price: priceOfKind };
}

/** Returns the details that have the shape in which they were written. */
function shapedDetails(details: JsonObject): object {
  const { reason, cause, price, losses, attempts, units, chargedMicroDollars } = details;
  return {
    reason: typeof reason === 'string' ? reason : undefined,
    cause: isObject(cause) ? cause : undefined,
    price: isObject(price) ? price : undefined,
    units: isObject(units) ? units : undefined,
    losses: Array.isArray(losses) ? losses.filter((loss) => typeof loss === 'string') : undefined,
    chargedMicroDollars: typeof chargedMicroDollars === 'number' ? chargedMicroDollars : undefined,
    attempts: Array.isArray(attempts) ? attempts.filter(isObject) : undefined,
  };
}

function tagsOf(value: unknown): readonly string[] | undefined {
  return typeof value === 'string' ? (JSON.parse(value) as string[]) : undefined;
}

function flagOf(value: number | undefined): boolean | undefined {
  return value === undefined ? undefined : value === 1;
}
