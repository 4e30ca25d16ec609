/** Text outside of strings that means nothing. */
const space = /[\t\n\r ]/;

const quote = 0x22;
const backslash = 0x5c;

/** Returns JSON text without the white space between its tokens, and any other text as it is. Linear in the length of the text. */
export function compactJson(text: string): string {
  if (!space.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  // By hand, because a regular expression that matches a long string overflows its stack. Numbers stay as they were written.
  let compact = '';
  let start = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) isInString = !isInString;
    else if (code === backslash) at += 1;
    else if (!isInString && isSpace(code)) {
      compact += text.slice(start, at);
      start = at + 1;
    }
  }
  return compact + text.slice(start);
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
