/**
 * Classifies failures for the cache: those that every equal request would meet, and outages, during which a stale response may be served. Also
 * makes the error for `only-if-cached`.
 */
import { GatewayError } from 'sluice';

/** Returns the 504 error for a call with `only-if-cached` that no stored response answers: see RFC 9111, section 5.2.1.7. */
export function notCached(): GatewayError {
  return new GatewayError(
    'not_cached',
    'There is no cached response for this request, and it has only-if-cached.',
  );
}

/** Returns true for a failure that every equal request would meet: an error of the request itself, by the provider. */
export function isTheSameForAll(error: unknown): boolean {
  return (
    error instanceof GatewayError && error.origin === 'upstream' && error.status < 500 && !error.retryable
  );
}

/** Returns true for a failure of providers, or of connections to them. */
export function isOutage(error: unknown): boolean {
  return (
    error instanceof GatewayError && (error.origin === 'upstream' || error.status >= 500) && error.retryable
  );
}
