/** Finds the matches of several patterns in a text in one pass, and merges those that overlap. */
import { Automaton, type Accepted } from './automaton.ts';
import type { Node } from './parse.ts';
import { compile } from './program.ts';

/** One pattern of a matcher. */
export interface Pattern {
  readonly node: Node;
  /** Of the matches of one group that begin at the same position only the longest counts. Default: one group. */
  readonly group?: number;
  /** Returns false for a match that only looks like one: a wrong check digit. */
  validate?(match: string): boolean;
}

/** A part of a text that patterns match. Overlapping matches are one span; the patterns of the longest come first. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly patterns: readonly number[];
}

/** The spans of a text, and the position up to which they are final. */
export interface Scan {
  readonly spans: readonly Span[];
  /** Position behind which more text may change the matches. */
  readonly until: number;
}

/** Overlapping matches are joined up to so many times the longest match: a span is held back until it is complete. */
const longestChain = 4;

/** Finds all patterns in one pass. Time is linear in the length of the text, because no match is longer than `longest` characters. */
export class Matcher {
  readonly #automaton: Automaton;
  readonly #patterns: readonly Pattern[];
  readonly #longest: number;
  readonly #groups: number;

  constructor(patterns: readonly Pattern[], longest: number) {
    this.#patterns = patterns;
    this.#longest = longest;
    this.#groups = new Set(patterns.map(({ group }) => group)).size;
    this.#automaton = new Automaton(compile(patterns.map(({ node }) => node)));
  }

  /** Scans a text from a position on, of which at most one character before is read. Stops at `to`, so that a long text can be scanned in steps. */
  scan(text: string, from = 0, isWhole = true, to = Infinity): Scan {
    const spans: Span[] = [];
    let current: Span | undefined;
    for (let at = from; ; at += 1) {
      at = this.#automaton.nextStart(text, at);
      if (at >= text.length) break;
      if (current !== undefined && at >= current.end) {
        spans.push(current);
        current = undefined;
      }
      if (at >= to && current === undefined) return { spans, until: at };
      const ends = this.#automaton.matchesAt(text, at, this.#longest, isWhole);
      if (ends === undefined) return { spans, until: current?.start ?? at };
      if (ends.length === 0) continue;
      const found = this.#best(text, at, ends);
      if (found === undefined) continue;
      if (current === undefined) current = found;
      else if (found.end <= current.end) current = { ...current, patterns: both(current, found) };
      else {
        if (at - current.start < this.#longest * longestChain) current = joined(current, found);
        else {
          spans.push({ ...current, end: at });
          current = found;
        }
      }
    }
    if (current !== undefined) spans.push(current);
    return { spans, until: text.length };
  }

  /** Returns the longest valid match at a position, with the patterns of other groups that match there too. */
  #best(text: string, start: number, ends: readonly Accepted[]): Span | undefined {
    let end = 0;
    let patterns: number[] | undefined;
    let groups: Set<number | undefined> | undefined;
    for (let index = ends.length - 1; index >= 0; index -= 1) {
      const accepted = ends[index];
      if (accepted === undefined) continue;
      for (const pattern of accepted.patterns) {
        const { group, validate } = this.#patterns[pattern] ?? {};
        if (end !== accepted.end && groups?.has(group) === true) continue;
        if (validate?.(text.slice(start, accepted.end)) === false) continue;
        if (patterns === undefined) end = accepted.end;
        (patterns ??= []).push(pattern);
        (groups ??= new Set()).add(group);
      }
      if (groups?.size === this.#groups) break;
    }
    return patterns === undefined ? undefined : { start, end, patterns };
  }
}

function both(one: Span, other: Span): readonly number[] {
  return [...new Set([...one.patterns, ...other.patterns])];
}

function joined(one: Span, other: Span): Span {
  const isLonger = other.end - other.start > one.end - one.start;
  return { start: one.start, end: other.end, patterns: isLonger ? both(other, one) : both(one, other) };
}
