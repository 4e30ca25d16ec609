/** Markdown of generated pages. */
import type { OptionRow } from './_schema.ts';

/** Returns a list entry: what can be set, its type and default, and what it does. */
export function optionLine({ path, type, default: value, text, isRequired }: OptionRow): string {
  const facts = [
    type,
    ...(isRequired ? ['required'] : []),
    ...(value === undefined ? [] : [`default ${shownDefault(value)}`]),
  ];
  return `- \`${path}\` (${facts.join('; ')})${text === '' ? '' : `: ${sentence(text)}`}`;
}

function shownDefault(json: string): string {
  return /^\d{5,}$/.test(json) ? Number(json).toLocaleString('en') : `\`${json}\``;
}

/** Returns a text as a sentence: with a period, and in one line. */
export function sentence(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const begun =
    /^[a-z]\w* /.test(line) && !/^[a-z]+: /.test(line) ? line[0]?.toUpperCase() + line.slice(1) : line;
  return /[.!?:]$/.test(begun) ? begun : `${begun}.`;
}

/** Returns the first line of a generated page: how it is written anew. */
export function generatedBy(test: string, of: string): string {
  return `This page is generated: \`npx vitest run ${test} -u\` writes it from ${of}.`;
}

/** Returns a page of these paragraphs. */
export function pageOf(...paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`;
}

/** Returns a Markdown table as oxfmt aligns it. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, index) =>
    Math.max(3, ...[head, ...rows].map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
