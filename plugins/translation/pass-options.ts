import type { Call, Target } from 'sluice/internal';

/** What is known of a reply that passes through. */
export interface PassOptions {
  readonly call: Call;
  readonly target: Target;
  /** The stream tells usage only because the gateway asked: the client must not see that frame. */
  readonly swallowUsage: boolean;
  /** Maximum number of bytes of a whole reply that is held, because it does not look like one or its words may have to change. Default 256 MiB. */
  readonly wholeLimit?: number;
}
