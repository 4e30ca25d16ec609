/** Longer words are a stranger's: no name of ours or a provider's is. */
const longest = 300;

/** Returns a text cut to what a column holds. */
export function text(value: string | undefined): string | null {
  if (value === undefined) return null;
  return clean(value.length > longest ? value.slice(0, longest) : value);
}

/** Returns text that both databases take. Postgres takes neither zero characters nor halves of a pair, and would refuse the whole batch for one of them. */
export function clean(value: string): string {
  return (value.includes('\0') ? value.replaceAll('\0', '') : value).toWellFormed();
}

/** Returns a whole number that a column can hold. */
export function whole(value: number): number {
  return Number.isFinite(value) ? Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER) : 0;
}
