/** Where a call should go. */

/**
 * Where a call must or should go: whoever made what it refers to, or still has it in a cache.
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
  /** True: it has something in a cache and nothing that the others lack, so that another may be asked at the same time. */
  readonly warm?: boolean;
}
