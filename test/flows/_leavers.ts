import { request as send, type ClientRequest } from 'node:http';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import type { Access } from './_wire.ts';

/** The books of a gateway, read from beside it. */
export interface Books {
  records(): Promise<readonly UsageRecord[]>;
  /** Reservations that are left, also those whose lease has run out. */
  reservations(): Promise<number>;
  spent(keyId: string): Promise<number>;
  close(): Promise<void>;
}

/** Opens the database of a gateway. */
export function openBooks(url: string): Books {
  const stores = openStores(url);
  const usageLog = openUsageLog(stores);
  return {
    async records() {
      const found: UsageRecord[] = [];
      for await (const record of usageLog.each({})) found.push(record);
      return found;
    },
    reservations: () => reservationsIn(stores),
    async spent(keyId) {
      const budget = { unit: 'token', period: 'total', amount: 1 } as const;
      const [state] = await openLedger(stores).states(keyId, [budget]);
      return state?.spent ?? 0;
    },
    close: () => stores.close(),
  };
}

async function reservationsIn({ database }: Stores): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM ledger_reservations';
  const row =
    database.kind === 'sqlite' ? database.connection.prepare(sql).get() : (await database.query(sql, []))[0];
  return Number(row?.['count']);
}

/** Begins a chat call whose client may leave at any time; its body is sent unless `body` says otherwise. */
export function beginCall(
  { url, key }: Access,
  content: object,
  headers: Readonly<Record<string, string>> = {},
  body: 'all' | 'half' | 'none' = 'all',
): ClientRequest {
  const text = JSON.stringify(content);
  const request = send(new URL('/v1/chat/completions', url), {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      ...headers,
    },
  });
  request.on('error', () => {});
  if (body === 'all') request.end(text);
  else if (body === 'half') request.write(text.slice(0, text.length / 2));
  else request.flushHeaders();
  return request;
}
