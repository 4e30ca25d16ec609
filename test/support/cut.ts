/** Cuts bytes at these places, wherever they lie. */
export function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const at = [
    0,
    ...places.map((position) => position % (bytes.length + 1)).toSorted((a, b) => a - b),
    bytes.length,
  ];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}
