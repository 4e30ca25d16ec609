/** The demo's token: up to twelve letters or digits, or one other character, with the space before it. */
const token = /\s*(?:[\p{L}\p{N}_]{1,12}|[^\s\p{L}\p{N}_])|\s+$/gu;

/** Returns the text cut into the demo's tokens; put together they are the text again. */
export function pieces(text: string): string[] {
  return text.match(token) ?? [];
}

/** Returns the number of the demo's tokens in a text. */
export function countWords(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(token)) count += 1;
  return count;
}
