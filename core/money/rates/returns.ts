import type { Clock } from '../ledger/clock.ts';
import type { ReturnsLine } from './index.ts';

/** Time in ms for which corrections are gathered. */
const gather = 25;

/** Gathers what a worker corrects and gives back, and sends it together. */
export class Returns {
  /** The process that counts takes several with one message. One of the version before does not. */
  areTakenTogether = false;
  readonly #line: ReturnsLine;
  readonly #clock: Clock;
  /** Amounts by subject and slice. */
  readonly #lowered = new Map<string, Map<number, number>>();
  readonly #raised = new Map<string, { slice: number; amount: number }>();
  readonly #slots = new Map<string, number>();
  #stopTimer: (() => void) | undefined;

  constructor(line: ReturnsLine, clock: Clock) {
    this.#line = line;
    this.#clock = clock;
  }

  /** Takes off a minute what was counted in this slice and not used. */
  lower(subject: string, slice: number, amount: number): void {
    if (amount <= 0) return;
    const slices = this.#lowered.get(subject) ?? new Map<number, number>();
    this.#lowered.set(subject, slices);
    slices.set(slice, (slices.get(slice) ?? 0) + amount);
    this.#later();
  }

  /** Counts what was used beyond, from now on. `slice`: in which its call was counted. */
  raise(subject: string, slice: number, amount: number): void {
    if (amount <= 0) return;
    const before = this.#raised.get(subject)?.amount ?? 0;
    this.#raised.set(subject, { slice, amount: before + amount });
    this.#later();
  }

  release(subject: string, count: number): void {
    if (count <= 0) return;
    this.#slots.set(subject, (this.#slots.get(subject) ?? 0) + count);
    this.#later();
  }

  /** Sends what was gathered. `recalled`: the recall that it answers. */
  flush(recalled?: number): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const isEmpty = this.#lowered.size + this.#raised.size + this.#slots.size === 0;
    if (isEmpty && recalled === undefined) return;
    const corrections = [
      ...[...this.#lowered].flatMap(([subject, slices]) =>
        [...slices].map(([slice, amount]) => ({ subject, slice, difference: -amount })),
      ),
      ...[...this.#raised].map(([subject, { slice, amount }]) => ({ subject, slice, difference: amount })),
    ];
    const slots = [...this.#slots];
    this.#lowered.clear();
    this.#raised.clear();
    this.#slots.clear();
    if (this.areTakenTogether) {
      this.#line.send({
        kind: 'give-back',
        corrections,
        slots,
        ...(recalled === undefined ? {} : { recalled }),
      });
      return;
    }
    for (const correction of corrections) this.#line.send({ kind: 'correct', ...correction });
    const released = slots.flatMap(([subject, count]) => Array.from({ length: count }, () => subject));
    if (released.length > 0) this.#line.send({ kind: 'release', slots: released });
  }

  #later(): void {
    this.#stopTimer ??= this.#clock.after(gather, () => this.flush());
  }
}
