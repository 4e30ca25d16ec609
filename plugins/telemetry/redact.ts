/** Removes credentials and matches of the operator's patterns from texts before export. */
import { maskSecrets } from 'sluice';
import { patternOf, removed, searchMargin, withoutCutEnd } from '../_redaction.ts';

/** Returns true for `/text/flags` that is a regular expression. */
export function isPattern(text: string): boolean {
  try {
    return patternOf(text) !== undefined;
  } catch {
    return false;
  }
}

/** Redacts a text and cuts it to `limit` characters. */
export type Redactor = (text: string, limit: number) => string;

/** Returns a function that removes what the patterns match and what looks like a credential, and cuts a text to a number of characters. */
export function createRedactor(patterns: readonly string[]): Redactor {
  const compiled = patterns.flatMap((pattern) => patternOf(pattern) ?? []);
  return (text, limit) => {
    const isCut = text.length > limit + searchMargin;
    const searched = isCut ? text.slice(0, limit + searchMargin) : text;
    const masked = maskSecrets(compiled.reduce((left, pattern) => left.replace(pattern, removed), searched));
    const safe = isCut ? withoutCutEnd(masked) : masked;
    return safe.length <= limit && !isCut ? safe : `${safe.slice(0, limit).toWellFormed()}${removed}`;
  };
}
