/** Decides what follows from a failed attempt: a retry, another key, a fallback, or the error that the client gets. */
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import { upstreamFailureOf } from '../sdk/upstream-failure.ts';
import type { FailureScope } from './target-selector.ts';
import { diagnose } from './health/diagnosis.ts';

/** Statuses after which the same request may succeed: timeout, conflict, too early. */
const again: ReadonlySet<number> = new Set([408, 409, 425]);

/** Returns true when the same target may well answer the second time. */
export function isRepeatable(error: GatewayError): boolean {
  const failure = upstreamFailureOf(error);
  return failure?.fault === 'failed' && again.has(failure.status);
}

/** Returns the scope of a failure, and true where another key of the same channel is the next best target. */
export function failureScopeOf(error: GatewayError): readonly [FailureScope, boolean] {
  switch (upstreamFailureOf(error)?.fault) {
    case 'credentials':
    case 'no-credit':
      return ['key', true];
    case 'rate-limit':
      return ['key', false];
    default:
      return ['channel', false];
  }
}

/** Returns true when the provider has said that it has no such model. */
function isUnknownModel(error: GatewayError): boolean {
  return diagnose(error).says === 'unknown';
}

/**
 * Returns the error for a call whose providers all responded that they do not have the model; undefined for other failures. A retry would
 * change nothing.
 */
export function nobodyKnows(failures: readonly GatewayError[], model: string): GatewayError | undefined {
  if (!failures.every(isUnknownModel)) return undefined;
  return new GatewayError('no_available_channel', `No provider of a channel knows the model "${model}".`, {
    param: 'model',
    origin: 'upstream',
    retryable: false,
    cause: failures.at(-1)?.cause,
  });
}

/**
 * Selects the error to return when every attempt failed: the latest one that is not a rate limit, else the latest one with the shortest
 * `retryAfter` (seconds) of all. `ready`: another such time, from health.
 */
export function selectFinalError(failures: readonly GatewayError[], ready?: number): GatewayError {
  const other = failures.findLast(({ code }) => code !== 'rate_limit_exceeded');
  if (other !== undefined) return other;
  const waits = [...failures.map(({ retryAfter }) => retryAfter), ready].filter((wait) => wait !== undefined);
  const last = failures.at(-1);
  if (last === undefined) throw new Error('Nothing has failed.');
  const retryAfter = waits.length === 0 ? undefined : waits.reduce((least, wait) => Math.min(least, wait));
  if (retryAfter === undefined || retryAfter === last.retryAfter) return last;
  const { code, message, status, origin, retryable, headers, cause } = last;
  return new GatewayError(code, message, { status, origin, retryable, headers, cause, retryAfter });
}

/** Returns true for a failure that another target may not share. A client error is never retried, because every target would return it. */
export function shouldFallBack(error: unknown): boolean {
  const { origin, retryable } = toGatewayError(error);
  return origin !== 'client' && retryable;
}
