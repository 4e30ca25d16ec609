import type { Call, Target } from 'sluice/internal';

/** Options for passing a response through, and known facts about it. */
export interface PassOptions {
  readonly call: Call;
  readonly target: Target;
  /** The stream tells usage only because the gateway asked: the client must not see that frame. */
  readonly swallowUsage: boolean;
  /** Maximum number of bytes of a whole reply that is held, because it does not look like one or its words may have to change. Default 256 MiB. */
  readonly wholeLimit?: number;
}
