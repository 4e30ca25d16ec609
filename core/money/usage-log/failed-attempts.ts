import type { FailedAttempts } from './index.ts';
import type { Query } from '../../state/database/long-reads.ts';

/**
 * Returns how many attempts of calls since a time have failed, and the latest of them, by channels. Few calls have any: the primary key finds
 * them by their time.
 */
export async function failedAttemptsIn(
  query: Query,
  since: number,
): Promise<ReadonlyMap<string, FailedAttempts>> {
  const rows = await query(
    'SELECT channel, COUNT(*) AS count, MAX(at) AS at FROM usage_attempts WHERE at >= ? GROUP BY channel',
    [Math.ceil(since)],
  );
  const found = new Map<string, FailedAttempts>();
  for (const { channel, count, at } of rows)
    found.set(String(channel), {
      count: Number(count),
      last: await lastOf(query, String(channel), Number(at)),
    });
  return found;
}

async function lastOf(query: Query, channel: string, at: number): Promise<FailedAttempts['last']> {
  const [row] = await query(
    'SELECT model, code, message FROM usage_attempts WHERE at = ? AND channel = ? ORDER BY id DESC, number DESC LIMIT 1',
    [at, channel],
  );
  return {
    at,
    model: String(row?.['model'] ?? ''),
    code: String(row?.['code'] ?? ''),
    message: String(row?.['message'] ?? ''),
  };
}
