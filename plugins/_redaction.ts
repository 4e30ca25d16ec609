/** Patterns of operators for what is removed from texts, and texts that are cut before they are searched. */

/** Replacement for removed text. */
export const removed = '…';

/** Number of characters beyond a limit that are searched, too, so that a match at the limit is found whole. */
export const searchMargin = 4_096;

/** Returns the regular expression of `/text/flags`; undefined for other texts. Throws a SyntaxError for one that is wrong. */
export function patternOf(text: string): RegExp | undefined {
  const [, source, flags = ''] = /^\/(.+)\/([imsu]*)$/s.exec(text) ?? [];
  return source === undefined ? undefined : new RegExp(source, `g${flags}`);
}

/** Removes the end of a text that was cut at {@link searchMargin} characters beyond a limit: a match there may have lost its end. */
export function withoutCutEnd(text: string): string {
  return text.slice(0, Math.max(0, text.length - searchMargin));
}
