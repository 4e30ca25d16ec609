/** Runs compiled patterns as a DFA whose states are built on first use, in linear time and without backtracking. */
import { contains, type CharSet } from './char-set.ts';
import type { Program } from './program.ts';

/** Result of reading one character: patterns that matched before it, and the state behind it. */
interface Step {
  readonly accepts: readonly number[] | undefined;
  readonly next: State | undefined;
}

class State {
  readonly items: readonly number[];
  /** Class of the character before, where a look-behind depends on it; -1 elsewhere. */
  readonly before: number;
  readonly steps: (Step | undefined)[];

  constructor(items: readonly number[], before: number, classes: number) {
    this.items = items;
    this.before = before;
    this.steps = Array.from({ length: classes + 1 });
  }
}

/** Maximum number of cached states. When it is reached the cache is cleared. */
const maxStates = 4_000;

/** End of a match, and the patterns that match up to it. */
export interface Accepted {
  readonly end: number;
  readonly patterns: readonly number[];
}

/** Runs a program as a DFA. Each character costs one table look-up, whatever the patterns are. */
export class Automaton {
  readonly #program: Program;
  /** Class of each UTF-16 code unit: units that are in the same sets share a class. */
  readonly #classOf: Uint16Array;
  /** Classes in each set, by the number of the set. */
  readonly #members: readonly Uint8Array[];
  /** The class of the edge of a text. */
  readonly #edge: number;
  #states = new Map<string, State>();
  readonly #starts: (State | undefined)[] = [];
  /** For a character before and one behind: 1 where no match begins between them, 2 where one may. */
  readonly #beginnings: Uint8Array;

  constructor(program: Program) {
    this.#program = program;
    const { classOf, members, classes } = classify(program.sets);
    this.#classOf = classOf;
    this.#members = members;
    this.#edge = classes;
    this.#beginnings = new Uint8Array((classes + 1) ** 2);
  }

  /** Returns the first place at or behind `from` at which a match may begin: most characters of a text begin none. */
  nextStart(text: string, from: number): number {
    const classOf = this.#classOf;
    const width = this.#edge + 1;
    const known = this.#beginnings;
    let before = from === 0 ? this.#edge : this.#class(text, from - 1);
    for (let at = from; at < text.length; at += 1) {
      const unit = classOf[text.charCodeAt(at)] ?? 0;
      let begins = known[before * width + unit];
      if (begins === 0) {
        begins = this.#step(this.#start(before), unit).next === undefined ? 1 : 2;
        known[before * width + unit] = begins;
      }
      if (begins === 2) return at;
      before = unit;
    }
    return text.length;
  }

  /**
   * Returns the ends of all matches that begin at a place, the shortest first, and none later than `longest` characters behind it.
   * Undefined where more text could change them: never when the text `isWhole`.
   */
  matchesAt(text: string, start: number, longest: number, isWhole: boolean): readonly Accepted[] | undefined {
    let state = this.#start(start === 0 ? this.#edge : this.#class(text, start - 1));
    let found: Accepted[] | undefined;
    for (let at = start; ; at += 1) {
      if (at >= text.length && !isWhole) return undefined;
      const unit = at < text.length ? this.#class(text, at) : this.#edge;
      const step = (state.steps[unit] ??= this.#step(state, unit));
      if (step.accepts !== undefined && at > start) (found ??= []).push({ end: at, patterns: step.accepts });
      if (step.next === undefined || at - start >= longest) return found ?? none;
      state = step.next;
    }
  }

  #class(text: string, at: number): number {
    return this.#classOf[text.charCodeAt(at)] ?? 0;
  }

  #start(before: number): State {
    return (this.#starts[before] ??= this.#state([this.#program.start], before));
  }

  #step({ items, before }: State, unit: number): Step {
    const accepts: number[] = [];
    const next: number[] = [];
    const seen = new Set<number>();
    const waiting = [...items];
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      if (seen.has(index)) continue;
      seen.add(index);
      const op = this.#program.ops[index];
      if (op === undefined) continue;
      if (op.type === 'split') for (const to of op.to) waiting.push(to);
      else if (op.type === 'accept') accepts.push(op.pattern);
      else if (op.type === 'set') {
        if (this.#members[op.set]?.[unit] === 1) next.push(op.to);
      } else {
        const tested = op.behind ? before : unit;
        if (tested === this.#edge ? op.none : this.#members[op.set]?.[tested] === 1) waiting.push(op.to);
      }
    }
    return {
      accepts: accepts.length === 0 ? undefined : accepts.toSorted((one, other) => one - other),
      next: next.length === 0 || unit === this.#edge ? undefined : this.#state(next, unit),
    };
  }

  #state(items: readonly number[], before: number): State {
    const sorted = [...new Set(items)].toSorted((one, other) => one - other);
    const previous = this.#looksBehind(sorted) ? before : -1;
    const key = `${previous}:${sorted.join()}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      if (this.#states.size >= maxStates) {
        this.#states = new Map();
        this.#starts.length = 0;
      }
      state = new State(sorted, previous, this.#edge);
      this.#states.set(key, state);
    }
    return state;
  }

  #looksBehind(items: readonly number[]): boolean {
    const seen = new Set<number>();
    const waiting = [...items];
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      if (seen.has(index)) continue;
      seen.add(index);
      const op = this.#program.ops[index];
      if (op?.type === 'split') for (const to of op.to) waiting.push(to);
      else if (op?.type === 'look') {
        if (op.behind) return true;
        waiting.push(op.to);
      }
    }
    return false;
  }
}

const none: readonly Accepted[] = [];

/** Divides the code units into classes whose members are in the same sets. */
function classify(sets: readonly CharSet[]): {
  readonly classOf: Uint16Array;
  readonly members: readonly Uint8Array[];
  readonly classes: number;
} {
  const edges = new Set([0]);
  for (const set of sets)
    for (let at = 0; at < set.length; at += 2) {
      edges.add(set[at] ?? 0);
      edges.add((set[at + 1] ?? 0) + 1);
    }
  const firsts = [...edges].filter((edge) => edge <= 0xff_ff).toSorted((one, other) => one - other);
  const classOf = new Uint16Array(0x1_00_00);
  const ids = new Map<string, number>();
  const samples: number[] = [];
  for (const [index, first] of firsts.entries()) {
    const signature = sets.map((set) => (contains(set, first) ? '1' : '0')).join('');
    let id = ids.get(signature);
    if (id === undefined) {
      id = samples.push(first) - 1;
      ids.set(signature, id);
    }
    classOf.fill(id, first, firsts[index + 1] ?? 0x1_00_00);
  }
  const members = sets.map((set) =>
    Uint8Array.from([...samples.map((unit) => (contains(set, unit) ? 1 : 0)), 0]),
  );
  return { classOf, members, classes: samples.length };
}
