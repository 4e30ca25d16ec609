/** Counts calls by the script of the shared store. */
import type { Clock } from '../ledger/clock.ts';
import { answerIn, clockMargin, correctionsOf, limitValues, namesOf, type StoreAnswer } from './answers.ts';
import type { GivenBack } from './give-backs.ts';
import type { HeldSlot } from './held-slots.ts';
import { takeScript } from './scripts.ts';
import { holdersOf, keyOf, type RatesStore } from './store.ts';
import type { RateRule, SlotRule } from './index.ts';

/** Maximum number of times that a call is counted because the process stood still for longer than a lease while it was. */
const countsPerCall = 2;

/** Dependencies of {@link StoreCounts}. */
export interface StoreCountsOptions {
  readonly store: RatesStore;
  /** Name of this process. */
  readonly process: string;
  readonly clock: Clock;
  /** Milliseconds of a slice, as the script takes them. */
  readonly slice: string;
  /** In milliseconds. */
  readonly lease: number;
  /** Gives back what may not be used. */
  readonly giveBack: (given: GivenBack) => void;
  /** Notes slots that the store may hold for this process. */
  readonly abandon: (slots: readonly HeldSlot[]) => void;
}

/** An answer of the store, with the ids of the slots that it gave by subject. */
export interface StoreCount {
  readonly answer: StoreAnswer;
  readonly taken: ReadonlyMap<string, readonly string[]>;
}

/** Counts calls in the store under ids of their own. */
export class StoreCounts {
  readonly #options: StoreCountsOptions;
  #ids = 0;

  constructor(options: StoreCountsOptions) {
    this.#options = options;
  }

  /** Runs the script for a call. Resolves with undefined when the store cannot be asked. */
  async count(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<StoreCount | undefined> {
    const { clock, lease, process, giveBack } = this.#options;
    for (let tries = 0; tries < countsPerCall; tries += 1) {
      const id = (this.#ids += 1);
      const name = `${process}:${id}`;
      const sentAt = clock.now();
      // oxlint-disable-next-line no-await-in-loop -- again only where this process stood still
      const answer = await this.#runScript(id, name, rules, slots);
      if (answer === undefined) return undefined;
      const taken = new Map(
        answer.slots.map((subject, index) => [subject, namesOf(name, answer.slotsAhead?.[index])] as const),
      );
      if (taken.size === 0 || clock.now() - sentAt < clockMargin * lease) return { answer, taken };
      // This process stood still: the lease of the slots may be over, and other calls may have been given them.
      giveBack({ corrections: correctionsOf(answer, rules), slots: taken, left: [] });
    }
    return undefined;
  }

  async #runScript(
    id: number,
    name: string,
    rules: readonly RateRule[],
    slots: readonly SlotRule[],
  ): Promise<StoreAnswer | undefined> {
    const { store, process, slice, lease, abandon } = this.#options;
    const subjects = [...rules, ...slots].map(({ subject }) => subject);
    const first = [slice, String(lease), String(rules.length), process, name];
    try {
      const keys = [...subjects.map(keyOf), ...subjects.map(holdersOf)];
      const reply = await store.run(takeScript, keys, [...first, ...limitValues(rules, slots)]);
      return answerIn(reply, id, rules, slots);
    } catch {
      for (const { subject, ahead } of slots)
        abandon(namesOf(name, ahead).map((one) => ({ subject, id: one })));
      return undefined;
    }
  }
}
