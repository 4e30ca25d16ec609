import type { Check } from './checks.ts';
import type { Placeholders } from './placeholders.ts';
import { replaceSpans } from './patterns/replacer.ts';
import type { CheckOutcome } from './remote-run.ts';
import type { Session } from './session.ts';

/** A place that a service has found. */
interface Mask {
  readonly start: number;
  readonly end: number;
  readonly label: string;
  readonly check: Check;
}

/** Masks what services have found. Of places that overlap the union is masked; placeholders of the call stay what they are. */
export function maskFinds(
  texts: readonly string[],
  answers: readonly CheckOutcome[],
  { placeholders }: Session,
): readonly string[] {
  const byText = new Map<number, Mask[]>();
  for (const { check, verdict } of answers) {
    if (check.action !== 'mask') continue;
    for (const { text, start, end, label } of verdict?.finds ?? []) {
      const masks = byText.get(text);
      if (masks === undefined) byText.set(text, [{ start, end, label, check }]);
      else masks.push({ start, end, label, check });
    }
  }
  if (byText.size === 0) return texts;
  return texts.map((text, index) => masked(text, byText.get(index) ?? [], placeholders));
}

function masked(text: string, masks: readonly Mask[], placeholders: Placeholders): string {
  const whole = masks.map((mask) => ({
    ...mask,
    start: isInPair(text, mask.start) ? mask.start - 1 : mask.start,
    end: isInPair(text, mask.end) ? mask.end + 1 : mask.end,
  }));
  const parts = without(united(whole), placeholders.placesIn(text));
  return replaceSpans(text, parts, (match, { label, check }) =>
    match.trim() === '' ? match : placeholders.of(label, match, check.restore),
  );
}

/** Joins masks that overlap, under the label of the longest. Returns them in order. */
function united(masks: readonly Mask[]): readonly Mask[] {
  const joined: Mask[] = [];
  let longest = 0;
  for (const mask of masks.toSorted((one, other) => one.start - other.start)) {
    const length = mask.end - mask.start;
    const last = joined.at(-1);
    if (last === undefined || mask.start >= last.end) {
      joined.push(mask);
      longest = length;
      continue;
    }
    const named = length > longest ? mask : last;
    longest = Math.max(longest, length);
    joined[joined.length - 1] = { ...named, start: last.start, end: Math.max(last.end, mask.end) };
  }
  return joined;
}

/** Cuts places out of masks. Both are in order and apart. */
function without(
  masks: readonly Mask[],
  spans: readonly { readonly start: number; readonly end: number }[],
): readonly Mask[] {
  const parts: Mask[] = [];
  let next = 0;
  for (const mask of masks) {
    let { start } = mask;
    while ((spans[next]?.end ?? Infinity) <= start) next += 1;
    for (let at = next; (spans[at]?.start ?? Infinity) < mask.end; at += 1) {
      const span = spans[at];
      if (span === undefined) break;
      if (span.start > start) parts.push({ ...mask, start, end: span.start });
      start = Math.max(start, span.end);
    }
    if (start < mask.end) parts.push({ ...mask, start });
  }
  return parts;
}

/** Returns true between the two code units of one character. */
function isInPair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}
