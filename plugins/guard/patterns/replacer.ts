/** Replaces matches in a text, whole or in the pieces of a stream. */
import type { TextTransformer } from 'sluice';
import type { Matcher, Span } from './matcher.ts';

/** Replaces what a matcher finds in a text that comes in pieces, and holds back only what may still become a match. */
export class Replacer implements TextTransformer {
  readonly #matcher: Matcher;
  readonly #replace: (match: string, span: Span) => string;
  /** Text that is held back, behind the one character before it. */
  #held = '';
  #from = 0;

  constructor(matcher: Matcher, replace: (match: string, span: Span) => string) {
    this.#matcher = matcher;
    this.#replace = replace;
  }

  push(text: string): string {
    return this.#give(text, false);
  }

  end(): string {
    const rest = this.#give('', true);
    this.#held = '';
    this.#from = 0;
    return rest;
  }

  #give(text: string, isWhole: boolean): string {
    const held = this.#held + text;
    const from = this.#from;
    const { spans, until } = this.#matcher.scan(held, from, isWhole);
    // A span may end behind what is final elsewhere: it is final itself.
    const lastSpan = spans.at(-1)?.end ?? from;
    let end = Math.max(until, lastSpan);
    if (!isWhole && end > lastSpan && isHighSurrogate(held.charCodeAt(end - 1))) end -= 1;
    let given = '';
    let at = from;
    for (const span of spans) {
      given += held.slice(at, span.start) + this.#replace(held.slice(span.start, span.end), span);
      at = span.end;
    }
    if (end > at) given += held.slice(at, end);
    this.#held = held.slice(Math.max(end - 1, 0));
    this.#from = end === 0 ? 0 : 1;
    return given;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

/** Returns a whole text with the spans replaced, which are in order and apart. */
export function replaceSpans<ReplacedSpan extends { readonly start: number; readonly end: number }>(
  text: string,
  spans: readonly ReplacedSpan[],
  replace: (match: string, span: ReplacedSpan) => string,
): string {
  let given = '';
  let at = 0;
  for (const span of spans) {
    given += text.slice(at, span.start) + replace(text.slice(span.start, span.end), span);
    at = span.end;
  }
  return given + text.slice(at);
}
