/** Writes usage records as CSV (RFC 4180), for the export of the usage log. */
import { csvCell } from 'sluice/internal';
import type { UsageRecord } from './core-types.ts';

/** A record with the names of its key and of its owners. */
export type NamedRecord = UsageRecord & {
  readonly keyName?: string;
  readonly teamName?: string;
  readonly memberName?: string;
  readonly organisationName?: string;
};

const columns = [
  'id',
  'at',
  'keyId',
  'keyName',
  'ip',
  'operation',
  'format',
  'upstreamFormat',
  'model',
  'upstreamModel',
  'channel',
  'stream',
  'passThrough',
  'status',
  'code',
  'reason',
  'ended',
  'input',
  'output',
  'cacheRead',
  'cacheWrite',
  'reasoning',
  'estimated',
  'microDollars',
  'ms',
  'firstMs',
  'gatewayMs',
  'team',
  'teamName',
  'member',
  'memberName',
  'organisation',
  'organisationName',
  'tags',
  'endUser',
  'dollars',
  'chargedMicroDollars',
] as const satisfies readonly (keyof NamedRecord | 'dollars')[];

/** Yields the CSV file in blocks of about 32 KB: a header line, then a line for each record. Times are ISO 8601 in UTC. */
export async function* csvOf(records: AsyncIterable<NamedRecord>): AsyncGenerator<string> {
  let block = `${columns.join(',')}\r\n`;
  for await (const record of records) {
    block += `${columns.map((column) => cell(column, record)).join(',')}\r\n`;
    if (block.length > 32_768) {
      yield block;
      block = '';
    }
  }
  yield block;
}

function cell(column: (typeof columns)[number], record: NamedRecord): string {
  if (column === 'dollars') return dollarsOf(record.microDollars);
  const value = record[column];
  if (value === undefined) return '';
  if (column === 'at') return new Date(record.at).toISOString();
  if (Array.isArray(value)) return csvCell(value.join('; '));
  return typeof value === 'string' ? csvCell(value) : String(value);
}

/** Formats an amount in dollars with six decimal places, without floating-point errors. */
function dollarsOf(microDollars: number | undefined): string {
  if (microDollars === undefined) return '';
  const digits = String(Math.abs(microDollars)).padStart(7, '0');
  return `${microDollars < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
