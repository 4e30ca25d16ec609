/** Databases and records of the usage log as older versions have made them. */
import { DatabaseSync } from 'node:sqlite';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { migratePostgres, migrateSqlite } from '../../core/state/database/migrations.ts';
import { openPostgresServer } from '../../core/state/database/postgres-server.ts';
import { schema } from '../../core/state/database/tables/index.ts';

const binOf = (ms: number): number => Math.round(Math.log1p(ms) * 25);

const text = (value: string | undefined): string =>
  value === undefined ? 'NULL' : `'${value.replaceAll("'", "''")}'`;
const number = (value: number | boolean | undefined): string =>
  value === undefined ? 'NULL' : String(Number(value));

/** SQL for the rows of `usage_records` that the version before kinds has written, and of their details. */
export function olderInsertion(records: readonly UsageRecord[]): string {
  const rows = records.map((one) =>
    [
      [number(one.at), text(one.id), text(one.keyId), text(one.ip), text(one.operation), text(one.format)],
      [text(one.upstreamFormat), text(one.model), text(one.upstreamModel), text(one.channel)],
      [number(one.stream), number(one.passThrough), number(one.status), text(one.code), text(one.ended)],
      [one.input, one.output, one.cacheRead, one.cacheWrite, one.reasoning].map(number),
      [one.estimated, one.microDollars, one.ms, one.firstMs, one.gatewayMs].map(number),
      [binOf(one.ms), one.firstMs === undefined ? undefined : binOf(one.firstMs)].map(number),
    ].flat(),
  );
  const details = records.flatMap(
    ({ at, id, reason, cause, price, losses, attempts, units, request, response }) => {
      const more = JSON.stringify({ reason, cause, price, losses, attempts, units });
      return more === '{}' && request === undefined && response === undefined
        ? []
        : [
            `(${number(at)}, ${text(id)}, ${more === '{}' ? 'NULL' : text(more)}, ${text(request)}, ${text(response)})`,
          ];
    },
  );
  return [
    `INSERT INTO usage_records (at, id, key_id, ip, operation, format, upstream_format, model, upstream_model, channel, stream, pass_through,
       status, code, ended, input, output, cache_read, cache_write, reasoning, estimated, micro_dollars, ms, first_ms, gateway_ms, ms_bin, first_bin)
     VALUES ${rows.map((row) => `(${row.join(', ')})`).join(', ')}`,
    ...(details.length === 0
      ? []
      : [`INSERT INTO usage_details (at, id, details, request, response) VALUES ${details.join(', ')}`]),
  ].join('; ');
}

/** Makes the tables of an empty database as they were before a step, and writes records as it was done then. */
export async function makeOlder(
  address: string,
  step: 'usage-log-3' | 'usage-log-5',
  records: readonly UsageRecord[],
): Promise<void> {
  const since = Number(step.at(-1));
  const steps = schema.filter(
    ({ name }) =>
      !name.startsWith('usage-charges-') &&
      !name.startsWith('usage-subject-records-') &&
      (!name.startsWith('usage-log-') || Number(name.at(-1)) < since),
  );
  if (address.startsWith('sqlite:')) {
    const connection = new DatabaseSync(address.slice('sqlite:'.length));
    connection.exec('PRAGMA journal_mode = WAL');
    migrateSqlite(connection, { steps, url: address });
    connection.exec(olderInsertion(records));
    connection.close();
    return;
  }
  const server = openPostgresServer(address);
  try {
    await server.transaction((session) => migratePostgres(session, { steps, url: server.url }));
    await server.query(olderInsertion(records));
  } finally {
    await server.close();
  }
}
