/** Tells plugins when a call is given a life of its own. */
import type { Call } from './author/call.ts';
import { callKey } from './call-key.ts';

/** Callbacks of {@link onDetached}. */
export const detachedCallbacks = callKey<((own: Call) => void)[]>('callbacks of detached calls');

/**
 * Runs the callback when a plugin gives the call a life of its own, with the call that goes on.
 *
 * @example
 * onDetached(call, (own) => own.onEnd(() => log.info({ id: own.id }, 'a call without a client has ended')));
 */
export function onDetached(call: Pick<Call, 'get' | 'set'>, job: (own: Call) => void): void {
  const known = call.get(detachedCallbacks);
  if (known === undefined) call.set(detachedCallbacks, [job]);
  else known.push(job);
}
