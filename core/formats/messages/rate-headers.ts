import type { RateStanding } from '../../sdk/format.ts';

/** `anthropic-ratelimit-requests-limit`, `-remaining`, `-reset` and the same of tokens; resets are times of RFC 3339. */
export function rateHeaders(standings: readonly RateStanding[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const { counts, limit, remaining, resetMs } of standings) {
    const name = `anthropic-ratelimit-${counts}`;
    headers[`${name}-limit`] = String(limit);
    headers[`${name}-remaining`] = String(remaining);
    // To the second, rounded up: whoever waits until then finds the limit free.
    const reset = new Date(Math.ceil((Date.now() + resetMs) / 1_000) * 1_000);
    headers[`${name}-reset`] = reset.toISOString().replace('.000Z', 'Z');
  }
  return headers;
}
