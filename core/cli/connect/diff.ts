import { maskSecrets } from '../../log.ts';

/** Lines around a change that are shown. */
const context = 2;

/** Longest files that are compared line by line, in lines: the table has as many cells as their product. */
const maxLines = 2_000;

interface Line {
  readonly sign: ' ' | '-' | '+';
  readonly text: string;
}

/** Returns the changed lines of a text with those around them. Secrets are masked, those that were there before too. */
export function shownDiff(before: string, after: string): string {
  const lines = compared(linesOf(before), linesOf(after));
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ sign }) => sign !== ' ');
  const shown: string[] = [];
  lines.forEach(({ sign, text }, index) => {
    if (isNear(index)) shown.push(`${sign} ${maskedLine(text)}`);
    else if (shown.at(-1) !== '  …') shown.push('  …');
  });
  return shown.join('\n');
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** The longest common subsequence of lines, and what is not part of it. */
function compared(before: readonly string[], after: readonly string[]): readonly Line[] {
  if (before.length > maxLines || after.length > maxLines)
    return [{ sign: '+', text: `(${after.length} lines: too many to compare)` }];
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  const at = (one: number, other: number): number => lengths[one * width + other] ?? 0;
  for (let one = before.length - 1; one >= 0; one -= 1)
    for (let other = after.length - 1; other >= 0; other -= 1)
      lengths[one * width + other] =
        before[one] === after[other]
          ? at(one + 1, other + 1) + 1
          : Math.max(at(one + 1, other), at(one, other + 1));
  const lines: Line[] = [];
  let one = 0;
  let other = 0;
  while (one < before.length || other < after.length) {
    if (one < before.length && other < after.length && before[one] === after[other]) {
      lines.push({ sign: ' ', text: before[one] ?? '' });
      one += 1;
      other += 1;
    } else if (one < before.length && at(one + 1, other) >= at(one, other + 1)) {
      lines.push({ sign: '-', text: before[one] ?? '' });
      one += 1;
    } else {
      lines.push({ sign: '+', text: after[other] ?? '' });
      other += 1;
    }
  }
  return lines;
}

/** Members whose values are secrets, in any of the syntaxes. */
const secretMember =
  /((?:api[-_]?key|token|secret|password|authorization|credential|"sluice|^sluice)["']?\s*[:=]\s*["']?)(?!\{env:|\$|true\b|false\b|null\b|\{|\[)([^"'\s,}{]{4,})/gi;

/** Returns a line without the secrets in it: of each the first characters are left, by which its owner knows it. */
export function maskedLine(text: string): string {
  const masked = text.replaceAll(
    secretMember,
    (_all, name: string, value: string) => `${name}${masked4(value)}`,
  );
  return maskSecrets(masked);
}

function masked4(value: string): string {
  return `${value.slice(0, 4)}…`;
}
