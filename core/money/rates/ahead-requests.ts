/** Keeps the pending requests that count ahead for a process. Parallel calls wait for them and do not each send a request. */
import type { Shares } from './shares.ts';
import type { RateRule, RatesAnswer, RateVerdict, SlotRule } from './index.ts';

/** Maximum number of waits of one call. */
const waitsPerCall = 2;

/** A request that may count ahead. It resolves when the shares have its answer. */
type AheadRequest = Promise<RatesAnswer | undefined>;

/** Counts a call without the other process or the store, because the request got no response. */
type CountAlone = (rules: readonly RateRule[], slots: readonly SlotRule[]) => RateVerdict;

/** The pending requests that may count ahead, by first subject: at most one for each. */
export class AheadRequests {
  readonly #shares: Shares;
  readonly #countAlone: CountAlone;
  readonly #pending = new Map<string, AheadRequest>();

  constructor(shares: Shares, countAlone: CountAlone) {
    this.#shares = shares;
    this.#countAlone = countAlone;
  }

  /** Adds a request for calls with these limits. */
  add(rules: readonly RateRule[], slots: readonly SlotRule[], request: AheadRequest): void {
    const subject = firstSubject(rules, slots);
    this.#pending.set(subject, request);
    const remove = (): void => {
      if (this.#pending.get(subject) === request) this.#pending.delete(subject);
    };
    void request.then(remove, remove);
  }

  /**
   * True while a request is pending for calls with these limits. A caller that awaits {@link take} without it sends its own request a turn later, so that
   * calls that come at once all find no request pending.
   */
  has(rules: readonly RateRule[], slots: readonly SlotRule[]): boolean {
    return this.#pending.has(firstSubject(rules, slots));
  }

  /** Waits for the pending request, and counts the call in what was counted ahead by it. Undefined where there is none, or other calls have taken all of it. */
  async take(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<RateVerdict | undefined> {
    const subject = firstSubject(rules, slots);
    for (let tries = 0; tries < waitsPerCall; tries += 1) {
      const pending = this.#pending.get(subject);
      if (pending === undefined) return undefined;
      // oxlint-disable-next-line no-await-in-loop -- again only where other calls have taken all of it
      const answer = await pending;
      // A request of its own would double the time that the call waits.
      if (answer === undefined) return this.#countAlone(rules, slots);
      const served = this.#shares.take(rules, slots);
      // Where the request was refused, nothing was counted ahead.
      if (served !== undefined || !answer.verdict.allowed) return served;
    }
    return undefined;
  }

  /** Resolves when no request is pending of those that are pending now. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending.values());
  }
}

/** Returns the subject by which calls with the same limits are grouped. */
function firstSubject(rules: readonly RateRule[], slots: readonly SlotRule[]): string {
  return rules[0]?.subject ?? slots[0]?.subject ?? '';
}
