/** Affinity of calls to targets. */

/**
 * Targets that a call must or should use, because they created an object of the call, or have its prompt in a cache.
 *
 * @example
 * return next(call.with({ affinity: { channel: 'work', only: true } }));
 */
export interface Affinity {
  /** The channel's id. */
  readonly channel: string;
  /** The id of one of the channel's keys; absent when any of them will do. */
  readonly key?: string;
  /** True: nowhere else. Otherwise it is tried first. */
  readonly only?: boolean;
  /** True when the target only has a warm cache, so that the call can be hedged at another target. */
  readonly warm?: boolean;
}
