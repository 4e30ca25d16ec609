/** The contract of rates, and what processes tell each other of them. */
import type { Rates as AuthorRates, RateRule, RateVerdict, SlotRule } from '../../sdk/author/rates.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';

export type { RateGrant, RateRule, RateState, RateVerdict, SlotRule } from '../../sdk/author/rates.ts';

/** Calls by the minute, and calls that run, shared by all gateways on one `shared` store. Nothing here takes longer than a second. */
export interface Rates extends AuthorRates {
  /** True while the shared store responds: for health and metrics. */
  readonly state: 'ok' | 'degraded';
  close(): Promise<void>;
}

/** How the shared store is found, and what happens while it is gone. */
export interface SharedSettings extends SharedStoreSettings {
  /** `refuse`: calls with limits get 503. `local`: each process counts for itself. */
  readonly whenDown: 'refuse' | 'local';
}

/** The lengths of a minute and of a slot's lease, in milliseconds: tests have less time. */
export interface RateTimes {
  readonly minute?: number;
  readonly lease?: number;
}

/** Request of a worker to the process that counts for all workers. */
export type RatesQuestion =
  | {
      readonly kind: 'take';
      readonly id: number;
      readonly rules: readonly RateRule[];
      readonly slots: readonly SlotRule[];
    }
  | {
      readonly kind: 'correct';
      readonly subject: string;
      readonly difference: number;
      readonly slice: number;
    }
  | { readonly kind: 'release'; readonly slots: readonly string[] }
  /** Many of both at once; `recalled`: the recall that is obeyed with it. */
  | {
      readonly kind: 'give-back';
      readonly corrections: readonly RateCorrection[];
      readonly slots: readonly (readonly [subject: string, count: number])[];
      readonly recalled?: number;
    };

/** As {@link RateGrant.correct}, for what was counted in this slice. */
export interface RateCorrection {
  readonly subject: string;
  readonly difference: number;
  readonly slice: number;
}

/** Response to a request of kind `take`. */
export interface RatesAnswer {
  readonly id: number;
  readonly verdict: Omit<RateVerdict, 'grant' | 'degraded'>;
  /** The piece of the minute in which it was counted. */
  readonly slice: number;
  /** Milliseconds until that piece is over. */
  readonly sliceMs?: number;
  /** Subjects whose slots it holds from now on. */
  readonly slots: readonly string[];
  /** How many more it holds of each. */
  readonly slotsAhead?: readonly number[];
}

/** Asks a worker to give back what is free of these subjects, because another one finds no room. */
export interface RatesRecall {
  readonly recall: number;
  readonly subjects: readonly string[];
}

/** The way to the process that counts for all. */
export interface RatesLine {
  /** False when it leads nowhere any more. */
  send(question: RatesQuestion): boolean;
  /** Tells who wants to hear the answers. */
  listen(listener: (news: RatesAnswer | RatesRecall) => void): void;
}

/** The way of what a process gives back to who counts. */
export interface ReturnsLine extends Pick<RatesLine, 'send'> {
  /**
   * Returns the time by the clock of this process until which the slots that it holds are its own; after it others may have been given them.
   * Absent: as long as the process lives.
   */
  slotsUntil?(): number;
}
