import type { Call, Target } from 'sluice/internal';

/** Options for passing a response through, and known facts about it. */
export interface PassOptions {
  readonly call: Call;
  readonly target: Target;
  /** True when only the gateway requested usage in the stream, so that the client must not get that frame. */
  readonly swallowUsage: boolean;
  /** Maximum number of bytes of a whole reply that is held, because it does not look like one or its words may have to change. Default 256 MiB. */
  readonly wholeLimit?: number;
}
