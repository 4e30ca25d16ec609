import type { CallOutcome, CallResponse, SettledCall } from './author/outcome.ts';

/** The account of a call as far as a {@link Call} shows it; `accountOf` of money/account gives the whole. */
export interface CallAccount {
  /** State of the call; final once it has ended. */
  readonly outcome: CallOutcome;
  /** Runs the callback once, soon after the call has ended and has been charged. */
  onOutcome(job: (outcome: CallOutcome) => void): void;
  /** Runs the callback then, too, with figures that are read when it asks for them. */
  onSettled(job: (settled: SettledCall) => void): void;
  /** Facts about the response that counts. */
  readonly record: CallResponse;
  /** Does work together with that of other calls that have ended. */
  afterwards(job: () => void): void;
  /** Runs the callback when the figures of the call are final, with its tokens. */
  onUsedTokens(job: (tokens: number | undefined) => void): void;
}
