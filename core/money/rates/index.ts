import type { SharedStoreSettings } from '../../settings/shared.ts';

/** A limit on how much may be counted for one subject within a minute. */
export interface RateRule {
  /** What is counted together: `key:key_…:requests` and the like. */
  readonly subject: string;
  readonly limit: number;
  /** How much this call counts: 1 for a request, its tokens for tokens. More than the limit counts as the whole limit, or the call could never run. */
  readonly cost: number;
  /** How much more is counted, for calls that follow, where the limit has ample room. Those that count in this process alone ignore it. */
  readonly ahead?: number;
}

/** A limit on how many calls of one subject run at the same time. */
export interface SlotRule {
  readonly subject: string;
  readonly limit: number;
  /** How many more slots are taken, as for {@link RateRule.ahead}. */
  readonly ahead?: number;
}

/** How a minute stands after a call was counted, or refused. */
export interface RateState {
  readonly subject: string;
  readonly limit: number;
  /** Never negative. */
  readonly remaining: number;
  /** Milliseconds until the whole limit is free again. */
  readonly resetMs: number;
  /** What was counted for calls that follow; `remaining` is without it. */
  readonly ahead?: number;
}

/** What a call holds once it was counted. Nothing in it throws, waits, or keeps the process alive. */
export interface RateGrant {
  /** Corrects the count of a subject by the true figure: what is added counts from now on, what is given back is taken off where it was counted. */
  correct(subject: string, difference: number): void;
  /** Gives the slots back, once. A slot that nobody gives back is free again when its lease has passed. */
  release(): void;
}

/** What came of asking. */
export interface RateVerdict {
  readonly allowed: boolean;
  /** Present when the call was allowed. */
  readonly grant?: RateGrant;
  /** One for each rule that counts by the minute; empty when nobody could be asked. */
  readonly states: readonly RateState[];
  /** The rule that refused the call. */
  readonly exceeded?: string;
  /** Milliseconds after which the call may be allowed; 0 when it is. Unknown for slots: a second. */
  readonly retryMs: number;
  /** True when the shared store could not be asked and the configured way out was taken. */
  readonly degraded?: boolean;
}

/** Calls by the minute, and calls that run, shared by all gateways on one `shared` store. Nothing here takes longer than a second. */
export interface Rates {
  /** Counts a call against all rules at once, or, when one is exceeded, against none. Never rejects. */
  take(rules: readonly RateRule[], slots?: readonly SlotRule[]): Promise<RateVerdict>;
  /** Whether the shared store answers: for health and metrics. */
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

/** What a worker asks of the process that counts for all of them. */
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

/** What it is answered when it took something. */
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
