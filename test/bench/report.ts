import type { Scenario } from './scenarios.ts';
import { spread, type Spread } from './statistics.ts';

/** One round: raw and Sluice one right after the other. */
export interface Round {
  readonly raw: { readonly cpu: number; readonly memory?: number };
  readonly sluice: { readonly cpu: number; readonly memory?: number };
}

/** The table's line for one scenario. */
export function line(
  { title, unit, target, memoryTarget }: Scenario,
  rounds: readonly Round[],
): readonly string[] {
  const ratio = spread(rounds.map(({ raw, sluice }) => sluice.cpu / raw.cpu));
  const cost = (name: keyof Round): string =>
    `${spread(rounds.map((round) => round[name].cpu)).median.toFixed(1)} us/${unit}`;
  return [
    title,
    cost('raw'),
    cost('sluice'),
    `${ratio.median.toFixed(2)} [${ratio.low.toFixed(2)}-${ratio.high.toFixed(2)}]`,
    target === undefined ? '' : judged(`<= ${target.toFixed(1)}`, ratio, target),
    ...(memoryTarget === undefined ? ['', '', ''] : memoryCells(rounds, memoryTarget)),
  ];
}

function memoryCells(rounds: readonly Round[], target: number): readonly string[] {
  const memory = (name: keyof Round): Spread =>
    spread(rounds.map((round) => round[name].memory ?? Number.NaN));
  const sluice = memory('sluice');
  return [
    `${memory('raw').median.toFixed(0)} KB`,
    `${sluice.median.toFixed(0)} KB`,
    judged(`<= ${target} KB`, sluice, target),
  ];
}

function judged(text: string, { median }: Spread, target: number): string {
  return `${text} ${median <= target ? 'yes' : 'NO'}`;
}

/** What stands above the lines. */
export const heading = [
  'scenario',
  'raw',
  'sluice',
  'ratio [quartiles]',
  'target',
  'raw/stream',
  'sluice/stream',
  'target',
];

/** Rows in columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
