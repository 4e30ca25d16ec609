/** Sets of UTF-16 code units, as sorted ranges that do not touch: `[first, last, first, last, …]`. */
export type CharSet = readonly number[];

/** Every code unit. */
export const anyChar: CharSet = [0, 0xff_ff];

/** Returns the union of sets. */
export function union(sets: readonly CharSet[]): CharSet {
  const ranges: [number, number][] = [];
  for (const set of sets)
    for (let at = 0; at < set.length; at += 2) ranges.push([set[at] ?? 0, set[at + 1] ?? 0]);
  ranges.sort(([one], [other]) => one - other);
  const merged: number[] = [];
  for (const [first, last] of ranges) {
    const end = merged.at(-1);
    if (end === undefined || first > end + 1) merged.push(first, last);
    else if (last > end) merged[merged.length - 1] = last;
  }
  return merged;
}

/** Returns every code unit that is not in the set. */
export function complement(set: CharSet): CharSet {
  const out: number[] = [];
  let from = 0;
  for (let at = 0; at < set.length; at += 2) {
    const first = set[at] ?? 0;
    if (first > from) out.push(from, first - 1);
    from = (set[at + 1] ?? 0) + 1;
  }
  if (from <= 0xff_ff) out.push(from, 0xff_ff);
  return out;
}

/** Returns true when a code unit is in the set. */
export function contains(set: CharSet, unit: number): boolean {
  let low = 0;
  let high = set.length / 2 - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (unit < (set[middle * 2] ?? 0)) high = middle - 1;
    else if (unit > (set[middle * 2 + 1] ?? 0)) low = middle + 1;
    else return true;
  }
  return false;
}

/** Returns a code unit with its other cases. Cases that are longer than one code unit (ß, SS) are not equal. */
export function casesOf(unit: number): CharSet {
  const text = String.fromCharCode(unit);
  const units = [unit];
  for (const other of [text.toLowerCase(), text.toUpperCase()])
    if (other.length === 1) units.push(other.charCodeAt(0));
  return union(units.map((one) => [one, one]));
}

/** Returns the set with all cases of its members. */
export function withCases(set: CharSet): CharSet {
  const more: CharSet[] = [set];
  for (let at = 0; at < set.length; at += 2)
    for (let unit = set[at] ?? 0; unit <= (set[at + 1] ?? 0); unit += 1) more.push(casesOf(unit));
  return union(more);
}

const known = new Map<string, CharSet>();

/** Returns the members of a Unicode property in the basic plane. Throws SyntaxError for a name that the language does not know. */
export function property(name: string): CharSet {
  let set = known.get(name);
  if (set === undefined) {
    const pattern = new RegExp(`^\\p{${name}}$`, 'u');
    const units: number[] = [];
    for (let unit = 0; unit <= 0xff_ff; unit += 1) {
      if (!pattern.test(String.fromCharCode(unit))) continue;
      if (units.at(-1) === unit - 1) units[units.length - 1] = unit;
      else units.push(unit, unit);
    }
    known.set(name, (set = units));
  }
  return set;
}

const span = (first: string, last = first): CharSet => [first.charCodeAt(0), last.charCodeAt(0)];

/** `\d` */
export const digits: CharSet = span('0', '9');
/** `\w` */
export const wordChars: CharSet = union([digits, span('A', 'Z'), span('_'), span('a', 'z')]);
/** `\s` */
export const spaces: CharSet = union([
  [9, 13],
  span(' '),
  span('\u00a0'),
  span('\u1680'),
  span('\u2000', '\u200a'),
  span('\u2028', '\u2029'),
  span('\u202f'),
  span('\u205f'),
  span('\u3000'),
  span('\ufeff'),
]);
