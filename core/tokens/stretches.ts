/** Characters of one word that are looked at together: the tokenizer's work grows with the square of a word's length. */
export const longestWord = 128;

/**
 * The text in stretches for the tokenizer, which may take letters, blanks or signs that stand in a row for one word, however many there
 * are: no stretch has a word of more than {@link longestWord} characters. Ordinary text is one stretch. A cut may part what would have been
 * one token, so that a count comes out higher by one for each of them, seldom by more.
 */
export function* stretches(text: string): Generator<string> {
  let start = 0;
  let word = 0;
  let before = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (endsWord(before, code)) word = index;
    else if (index - word >= longestWord && !isTrail(code)) {
      yield text.slice(start, index);
      start = index;
      word = index;
    }
    before = code;
  }
  if (start < text.length) yield start === 0 ? text : text.slice(start);
}

/** True where the tokenizer certainly begins a new word: behind a letter or digit of ASCII, at anything of ASCII that is neither. An apostrophe may go on (`it's`). */
function endsWord(before: number, code: number): boolean {
  return code < 0x80 && code !== 0x27 && !isAlphanumeric(code) && isAlphanumeric(before);
}

function isAlphanumeric(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39);
}

/** The second half of a character that JavaScript keeps in two. */
function isTrail(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
