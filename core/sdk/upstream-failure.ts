/** Facts about a failure of a provider, as errors carry them. */

/**
 * Kind of a failure of a provider.
 *
 * @example
 * const isBusy = fault === 'rate-limit' || fault === 'overloaded';
 */
export type UpstreamFault =
  | 'context-length'
  | 'content-policy'
  | 'no-credit'
  | 'credentials'
  | 'rate-limit'
  | 'overloaded'
  | 'timeout'
  | 'too-large'
  | 'not-found'
  | 'bad-request'
  | 'conversation'
  | 'failed';

/**
 * Error of a provider, for operators. The client gets another status, and possibly another message.
 *
 * @example
 * const { status, message }: UpstreamFailure = failure;
 */
export interface UpstreamFailure {
  readonly fault: UpstreamFault;
  /** The HTTP status that the provider answered with; 200 for an error inside a stream. */
  readonly status: number;
  /** The provider's sentence, cleaned; empty when it gave none. */
  readonly message: string;
}

/**
 * Returns the provider's failure behind an error with the origin `upstream`; undefined for every other error.
 *
 * @example
 * const failure = error instanceof GatewayError ? upstreamFailureOf(error) : undefined;
 * if (failure?.fault === 'bad-request') log.warn({ sentence: failure.message }, 'a provider refused a request');
 */
export function upstreamFailureOf({ cause }: Error): UpstreamFailure | undefined {
  return typeof cause === 'object' && cause !== null && 'fault' in cause && 'message' in cause
    ? (cause as UpstreamFailure)
    : undefined;
}
