/** Judges refusals of a race by what was spent and used around them. */

/** One look at all budgets. */
export interface Look {
  /** `performance.now()`. */
  readonly at: number;
  /** Sum of spent and reserved amounts of each budget, without allotments. */
  readonly used: readonly number[];
}

/** A call that was refused for a budget. */
export interface Refusal {
  readonly from: number;
  readonly until: number;
  /** Indexes of the budgets that it must fit in, and the most that it may come to in the unit of each. */
  readonly needs: ReadonlyMap<number, number>;
}

/** Time in ms around a refusal in which all looks must have found room for the call: calls that compete with it come and go meanwhile. */
const around = 1_000;

/** Longest time in ms without a look in which nothing is judged: what came and went meanwhile is not known. */
const longestGap = 500;

/** Calls like the refused one for which there must have been room: some may wait at the same time. */
const margin = 3;

/**
 * Returns how many calls were refused without need: all looks around the refusal found room in each budget that only reservations ahead held.
 * `unjudged`: refusals around which there were too few looks.
 */
export function judged(
  looks: readonly Look[],
  refusals: readonly Refusal[],
  amounts: readonly number[],
): { readonly unfair: number; readonly unjudged: number } {
  let [unfair, unjudged] = [0, 0];
  for (const { from, until, needs } of refusals) {
    const near = looks.filter(({ at }) => at >= from - around && at <= until + around);
    const times = [from - around, ...near.map(({ at }) => at), until + around];
    const gap = Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
    const hasRoom = ({ used }: Look): boolean =>
      [...needs].every(([index, need]) => (used[index] ?? 0) + margin * need <= (amounts[index] ?? 0));
    if (gap > longestGap) unjudged += 1;
    else if (near.every(hasRoom)) unfair += 1;
  }
  return { unfair, unjudged };
}
