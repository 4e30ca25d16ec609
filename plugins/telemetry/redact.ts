/** Removes credentials and matches of the operator's patterns from texts before export. */
import { maskSecrets } from 'sluice';

/** Replacement for removed text. */
const removed = '…';

/** Number of characters behind the limit that are searched as well, so that a match at the limit is found whole. */
const margin = 4_096;

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
    const isCut = text.length > limit + margin;
    const searched = isCut ? text.slice(0, limit + margin) : text;
    const masked = maskSecrets(compiled.reduce((left, pattern) => left.replace(pattern, removed), searched));
    // Behind a cut a match may have lost its end, so that it was not found.
    const safe = isCut ? masked.slice(0, Math.max(0, masked.length - margin)) : masked;
    return safe.length <= limit && !isCut ? safe : `${safe.slice(0, limit).toWellFormed()}${removed}`;
  };
}

function patternOf(text: string): RegExp | undefined {
  const [, source, flags = ''] = /^\/(.+)\/([imsu]*)$/s.exec(text) ?? [];
  return source === undefined ? undefined : new RegExp(source, `g${flags}`);
}
