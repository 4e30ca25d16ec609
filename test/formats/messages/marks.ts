/** True when one of the marks stands anywhere in the bytes, as the pass-through's scanner looks for them. */
export function firstMarkIn(text: string, marks: readonly string[]): boolean {
  const bytes = Buffer.from(text);
  return marks.some((mark) => bytes.indexOf(mark, 0, 'latin1') >= 0);
}
