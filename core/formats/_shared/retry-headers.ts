import type { GatewayError } from '../../sdk/errors.ts';

/**
 * Returns the headers that tell clients whether and when to try again: `retry-after` in whole seconds (at least 1) on 429 and on a temporary 503,
 * `x-should-retry: false` on a permanent failure that their retry rules would take for a passing one. With the error's own headers.
 */
export function retryHeaders(error: GatewayError): Readonly<Record<string, string>> {
  const { status, retryable, retryAfter } = error;
  const headers: Record<string, string> = { ...error.headers };
  if (retryable && (retryAfter !== undefined || status === 429 || status === 503)) {
    headers['retry-after'] ??= String(Math.max(1, Math.ceil(retryAfter ?? 1)));
  }
  if (!retryable && (status === 408 || status === 409 || status === 429 || status >= 500))
    headers['x-should-retry'] = 'false';
  return headers;
}
