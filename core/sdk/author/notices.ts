import type { GatewayError } from '../errors.ts';

/**
 * Notices of a gateway to its plugins outside of calls, by name.
 *
 * @example
 * tools.onNotice('attempt-failed', ({ channel, error }: GatewayNotices['attempt-failed']) => failures.add({ channel, code: error.code }));
 */
export interface GatewayNotices {
  /** A channel has failed in an attempt, whatever became of the call. */
  'attempt-failed': { readonly channel: string; readonly model: string; readonly error: GatewayError };
  /** A model of a channel was found to refuse a member of requests, which is left out from now on. */
  'refusal-learned': { readonly channel: string; readonly model: string };
  /** A callback at the end of a call has thrown. The log has the error. */
  'end-of-call-failed': undefined;
}
