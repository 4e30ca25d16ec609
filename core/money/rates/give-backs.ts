/** Script calls by which a process returns calls and slots to the shared store. */
import { holdersOf, keyOf } from './store.ts';
import type { RateCorrection } from './index.ts';

/** Maximum number of minutes, slots and holders that one script call corrects. */
const maxParts = 200;

/** Everything that is given back at a time. */
export interface GivenBack {
  readonly corrections: readonly RateCorrection[];
  /** Ids of slots by subject. */
  readonly slots: ReadonlyMap<string, readonly string[]>;
  /** Subjects of which nothing is free any more. */
  readonly left: readonly string[];
}

/** Keys and values of one call of the script. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly values: readonly string[];
}

interface Part {
  readonly kind: 0 | 1 | 2 | 3;
  readonly key: string;
  readonly values: readonly string[];
}

/** Returns what has to be called; the holders are left last, when all that was theirs is given back. */
export function giveBackCalls(given: GivenBack, slice: string, process: string): readonly ScriptCall[] {
  const parts = [...partsOf(given)].toSorted((a, b) => a.kind - b.kind);
  const calls: ScriptCall[] = [];
  for (let from = 0; from < parts.length; from += maxParts) {
    const some = parts.slice(from, from + maxParts);
    const counts = [0, 1, 2, 3].map((kind) => String(some.filter((part) => part.kind === kind).length));
    calls.push({
      keys: some.map(({ key }) => key),
      values: [slice, process, ...counts, ...some.flatMap(({ values }) => values)],
    });
  }
  return calls;
}

function* partsOf({ corrections, slots, left }: GivenBack): Generator<Part> {
  for (const { subject, difference, slice } of corrections) {
    // Counts in the store are whole numbers: what is rounded is rounded up.
    const amount = Math.ceil(difference);
    if (amount < 0) yield { kind: 0, key: keyOf(subject), values: [String(slice), String(-amount)] };
    else if (amount > 0) yield { kind: 1, key: keyOf(subject), values: [String(amount)] };
  }
  for (const [subject, ids] of slots)
    for (let from = 0; from < ids.length; from += maxParts) {
      const some = ids.slice(from, from + maxParts);
      yield { kind: 2, key: keyOf(subject), values: [String(some.length), ...some] };
    }
  for (const subject of left) yield { kind: 3, key: holdersOf(subject), values: [] };
}
