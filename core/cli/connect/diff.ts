import { maskSecrets } from '../../log.ts';

/** Number of lines that are shown before and after a change. */
const context = 2;

/** Maximum number of lines of a file for a comparison. The comparison needs memory for the product of both numbers of lines. */
const maxLines = 2_000;

interface Line {
  readonly sign: ' ' | '-' | '+';
  readonly text: string;
}

/**
 * Returns the changed lines of a text with those around them. Masks texts that are not in `own`, because any of them may be a secret. Keeps
 * the first characters of long texts, so that the user recognizes them.
 */
export function shownDiff(before: string, after: string, own: ReadonlySet<string> = new Set()): string {
  const lines = compared(linesOf(before), linesOf(after));
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ sign }) => sign !== ' ');
  const shown: string[] = [];
  lines.forEach(({ sign, text }, index) => {
    if (isNear(index)) shown.push(`${sign} ${maskedLine(text, own)}`);
    else if (shown.at(-1) !== '  …') shown.push('  …');
  });
  return shown.join('\n');
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Returns the lines of both texts, marked as kept, removed or added, by their longest common subsequence. */
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

/** The name of a member with `:` or `=`, or the mark of an item of a list in YAML. */
const head = /^\s*(?:- +)?(?:(?:export +)?(?:"[^"]*"|'[^']*'|[\w.$/-]+)\s*(?::(?=\s|$)|=)\s*)?/;

/** Parts of a value: texts in quotes, names of members, punctuation, and words. */
const parts = /"(?:[^"\\]|\\.)*"(?:\s*:)?|'[^']*'(?:\s*[:=])?|[\w.-]+\s*=|[{}[\],\s]+|[^\s{}[\],"']+|["']/g;

/** Numbers, literals, marks of blocks, and references to variables. */
const harmless =
  /^(?:-?\d+(?:\.\d+)?|true|false|null|[|>][+-]?|\{env:\w+\}|\$\w+|\$\{\{? ?[\w.]+ ?\}?\}|[{}[\],\s]+)$/;

/** Minimum length of a text of which the first characters are shown. */
const longText = 12;

function maskedLine(text: string, own: ReadonlySet<string>): string {
  const name = head.exec(text)?.[0] ?? '';
  const value = text.slice(name.length);
  const plain = value.trim().replace(/,$/, '');
  if (own.has(plain) || harmless.test(plain)) return maskSecrets(text);
  const masked = value.replaceAll(parts, (part) => maskedPart(part, own));
  // One mark for the words of a comment or a text over several lines.
  return maskSecrets(name + masked.replaceAll(/…(?:\s+…)+/g, '…'));
}

function maskedPart(part: string, own: ReadonlySet<string>): string {
  if (/[:=]$/.test(part) || harmless.test(part)) return part;
  const [, quote = '', inner = part] = /^(["'])(.*)\1$/.exec(part) ?? [];
  if (own.has(inner) || harmless.test(inner)) return part;
  return `${quote}${quote !== '' && inner.length >= longText ? inner.slice(0, 4) : ''}…${quote}`;
}
