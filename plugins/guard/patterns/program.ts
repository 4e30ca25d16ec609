/** Compiles parsed patterns into one nondeterministic finite automaton (NFA). */
import type { CharSet } from './char-set.ts';
import type { Node } from './parse.ts';

/** One instruction of a program. `set` and `look` name a set by its index. */
export type Op =
  | { readonly type: 'set'; readonly set: number; readonly to: number }
  | {
      readonly type: 'look';
      readonly set: number;
      readonly behind: boolean;
      readonly none: boolean;
      readonly to: number;
    }
  | { readonly type: 'split'; readonly to: readonly number[] }
  | { readonly type: 'accept'; readonly pattern: number };

/** Patterns as one nondeterministic automaton, whose sets stand in a table. */
export interface Program {
  readonly ops: readonly Op[];
  readonly sets: readonly CharSet[];
  readonly start: number;
}

/** Maximum number of instructions of all patterns of a program. */
const maxOps = 500_000;

/** Compiles patterns into one program. Throws RangeError where they are too large. */
export function compile(patterns: readonly Node[]): Program {
  const ops: Op[] = [];
  const sets: CharSet[] = [];
  const known = new Map<string, number>();
  const add = (op: Op): number => {
    if (ops.length >= maxOps) throw new RangeError('The patterns are too large together.');
    return ops.push(op) - 1;
  };
  const setIndex = (set: CharSet): number => {
    const key = set.join();
    let index = known.get(key);
    if (index === undefined) known.set(key, (index = sets.push(set) - 1));
    return index;
  };
  /** Compiles a node in front of what follows it, and returns where it begins. */
  const before = (node: Node, to: number): number => {
    switch (node.type) {
      case 'set':
        return add({ type: 'set', set: setIndex(node.set), to });
      case 'look':
        return add({ ...node, set: setIndex(node.set), to });
      case 'seq':
        return node.parts.reduceRight((next, part) => before(part, next), to);
      case 'alt':
        return add({ type: 'split', to: node.parts.map((part) => before(part, to)) });
      case 'repeat':
        return repeated(node, to);
    }
  };
  const repeated = (node: Extract<Node, { type: 'repeat' }>, to: number): number => {
    let next = to;
    if (node.max === Infinity) {
      // The loop is known by its index before what it repeats is compiled.
      const loop = add({ type: 'split', to: [] });
      const body = before(node.node, loop);
      ops[loop] = { type: 'split', to: [body, to] };
      next = loop;
    } else {
      for (let times = node.min; times < node.max; times += 1)
        next = add({ type: 'split', to: [before(node.node, next), to] });
    }
    for (let times = 0; times < node.min; times += 1) next = before(node.node, next);
    return next;
  };
  const starts = patterns.map((node, pattern) => before(node, add({ type: 'accept', pattern })));
  return { start: add({ type: 'split', to: starts }), ops, sets };
}
