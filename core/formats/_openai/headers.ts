/**
 * Headers of OpenAI's formats: rate limits for the client (`x-ratelimit-…`, `retry-after-ms`), and `openai-beta`, which is forwarded to the
 * provider.
 */
import type { RateStanding } from '../../sdk/format.ts';

/** Returns `x-ratelimit-limit-requests`, `-remaining-`, `-reset-` and the same of tokens; `retry-after-ms` with a refusal. */
export function chatRateHeaders(
  standings: readonly RateStanding[],
  retryMs?: number,
): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const { counts, limit, remaining, resetMs } of standings) {
    headers[`x-ratelimit-limit-${counts}`] = String(limit);
    headers[`x-ratelimit-remaining-${counts}`] = String(remaining);
    headers[`x-ratelimit-reset-${counts}`] = duration(resetMs);
  }
  if (retryMs !== undefined) headers['retry-after-ms'] = String(Math.max(1, Math.ceil(retryMs)));
  return headers;
}

/** Returns a duration as the official API writes it: `20ms`, `1.5s`, `6m0s`. */
function duration(ms: number): string {
  const whole = Math.ceil(ms);
  if (whole < 1_000) return `${whole}ms`;
  const minutes = Math.floor(whole / 60_000);
  const seconds = (whole - minutes * 60_000) / 1_000;
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

/** Headers that travel between equals. */
export function headersFor(headers: Readonly<Record<string, string>>): {
  readonly headers?: Readonly<Record<string, string>>;
} {
  const beta = headers['openai-beta'];
  return beta === undefined || beta === '' ? {} : { headers: { 'openai-beta': beta } };
}
