import { yieldTurn } from '../../state/database/yield-turn.ts';
import type { FailedAttempts } from './index.ts';
import { sliceEnd, type Ask } from './questions.ts';

/**
 * Returns how many attempts of calls since a time have failed, and the latest of them, by channels. Reads in slices, so that calls go on
 * between them however many there are.
 */
export async function failedAttemptsIn(
  ask: Ask,
  since: number,
): Promise<ReadonlyMap<string, FailedAttempts>> {
  const counts = new Map<string, { count: number; at: number }>();
  for (let start = Math.ceil(since); start < Number.MAX_SAFE_INTEGER;) {
    const end = await sliceEnd(ask, start, Number.MAX_SAFE_INTEGER);
    const rows = await ask(
      'SELECT channel, COUNT(*) AS count, MAX(at) AS at FROM usage_attempts WHERE at >= ? AND at < ? GROUP BY channel',
      [start, end],
    );
    for (const { channel, count, at } of rows) {
      const before = counts.get(String(channel))?.count ?? 0;
      counts.set(String(channel), { count: before + Number(count), at: Number(at) });
    }
    start = end;
    await yieldTurn();
  }
  const found = new Map<string, FailedAttempts>();
  for (const [channel, { count, at }] of counts)
    found.set(channel, { count, last: await lastOf(ask, channel, at) });
  return found;
}

async function lastOf(ask: Ask, channel: string, at: number): Promise<FailedAttempts['last']> {
  const [row] = await ask(
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
