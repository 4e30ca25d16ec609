/** Headers of the messages format: its version, its betas, its rate limits. */
import { GatewayError } from '../../sdk/errors.ts';
import type { RateStanding } from '../../sdk/format.ts';
import { defined } from '../_shared/fields.ts';

type Headers = Readonly<Record<string, string | undefined>>;

const versionHeader = 'anthropic-version';
const firstVersion = '2023-06-01';

/** Returns a header under its real name or the spec's neutral one; the real name wins, an empty value counts as absent. */
function either(headers: Headers, real: string, neutral: string): string | undefined {
  return headers[real] || headers[neutral] || undefined;
}

/** Insists on the version header: any date from the first version on. Throws 400 naming the header. */
export function checkVersion(headers: Headers): void {
  const version = either(headers, versionHeader, 'a-version')?.trim();
  if (version === undefined) {
    throw new GatewayError('missing_required_parameter', `${versionHeader}: the header is required.`, {
      param: versionHeader,
    });
  }
  if (!isDate(version) || version < firstVersion) {
    throw new GatewayError(
      'invalid_value',
      `${versionHeader}: the header must be a date (YYYY-MM-DD) from ${firstVersion} on.`,
      { param: versionHeader },
    );
  }
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** Returns the version and beta flags that travel from a client of this format to a provider of it, in the official spelling. */
export function travelling(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const version = either(headers, versionHeader, 'a-version');
  const beta = either(headers, 'anthropic-beta', 'a-beta');
  return defined({ [versionHeader]: version, 'anthropic-beta': beta });
}

/** Returns `anthropic-ratelimit-requests-limit`, `-remaining`, `-reset` and the same of tokens; resets are times of RFC 3339. */
export function rateHeaders(standings: readonly RateStanding[]): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const { counts, limit, remaining, resetMs } of standings) {
    const name = `anthropic-ratelimit-${counts}`;
    headers[`${name}-limit`] = String(limit);
    headers[`${name}-remaining`] = String(remaining);
    // Rounded up to the second, so that the limit is free at that time.
    const reset = new Date(Math.ceil((Date.now() + resetMs) / 1_000) * 1_000);
    headers[`${name}-reset`] = reset.toISOString().replace('.000Z', 'Z');
  }
  return headers;
}
