/** The bench's tables. */
import type { Round, Rounds } from './rounds.ts';
import type { Scenario } from './scenarios.ts';
import { spread } from './statistics.ts';

/** A row: cells from the left. */
export type Row = readonly string[];

/** Heading of {@link costs}. */
export const costHeading: Row = [
  'scenario',
  'target',
  'CPU per call or chunk',
  'x raw [quartiles]',
  'in a second',
  'x raw',
  'goal (CPU)',
];

/** Rows for the rounds of scenarios: one for each target. A goal is judged by the median of CPU ratios within rounds. */
export function costs(scenarios: readonly Scenario[], rounds: Rounds): readonly Row[] {
  return scenarios.flatMap(({ name, title, unit, goal }) => {
    const own = rounds.get(name) ?? [];
    const targets = Object.keys(own[0] ?? {});
    return targets.toSorted(rawFirst).map((target, index): Row => {
      const of = (member: 'cpu' | 'perSecond', against?: 'raw'): number[] =>
        own.map((round) => {
          const value = round[target]?.[member] ?? Number.NaN;
          return against === undefined ? value : value / (round[against]?.[member] ?? Number.NaN);
        });
      const cpu = spread(of('cpu'));
      const perSecond = spread(of('perSecond'));
      const first = [index === 0 ? `${name}: ${title}` : '', target, `${digits(cpu.median)} us`];
      if (target === 'raw') return [...first, '', `${digits(perSecond.median)} ${unit}s`];
      const ratio = spread(of('cpu', 'raw'));
      return [
        ...first,
        Number.isNaN(ratio.median)
          ? ''
          : `${ratio.median.toFixed(2)} [${ratio.low.toFixed(2)}-${ratio.high.toFixed(2)}]`,
        `${digits(perSecond.median)} ${unit}s`,
        Number.isNaN(ratio.median) ? '' : spread(of('perSecond', 'raw')).median.toFixed(2),
        goal === undefined || Number.isNaN(ratio.median) ? '' : judged(ratio.median, goal),
      ];
    });
  });
}

/** Heading of {@link varieties}. */
export const varietyHeading: Row = [
  'requests',
  'target',
  'CPU per call',
  'x raw',
  'x the simplest of the size [quartiles]',
  'law',
];

/** A request of one size may cost so many times what the simplest of that size costs. */
export const mostOfSimplest = 1.3;

/**
 * Rows for scenarios that are compared with the simplest of their size. CPU is compared within rounds, each target with itself: what raw
 * costs differs with the bytes on the wire.
 */
export function varieties(scenarios: readonly Scenario[], rounds: Rounds): readonly Row[] {
  return scenarios.flatMap(({ name, title, simplest, because }) => {
    const own = rounds.get(name) ?? [];
    const base = rounds.get(simplest ?? '') ?? [];
    const targets = Object.keys(own[0] ?? {}).filter((target) => target !== 'raw');
    return targets.map((target, index): Row => {
      const cpu = (round: Round | undefined, of = target): number => round?.[of]?.cpu ?? Number.NaN;
      const toRaw = spread(own.map((round) => cpu(round) / cpu(round, 'raw'))).median;
      const toSimplest = spread(own.map((round, number) => cpu(round) / cpu(base[number])));
      const { median, low, high } = toSimplest;
      return [
        index === 0 ? `${name}: ${title}` : '',
        target,
        `${digits(spread(own.map((round) => cpu(round))).median)} us`,
        toRaw.toFixed(2),
        name === simplest ? '' : `${median.toFixed(2)} [${low.toFixed(2)}-${high.toFixed(2)}]`,
        name === simplest ? '' : lawful(median, because),
      ];
    });
  });
}

function lawful(ratio: number, because: string | undefined): string {
  if (ratio <= mostOfSimplest) return 'yes';
  return because === undefined ? 'NO' : `no: ${because}`;
}

/** Heading of {@link Row}s of other figures. */
export const figureHeading: Row = ['figure', 'target', 'value', 'goal'];

/** A goal, and whether it is reached. */
export function judged(value: number, goal: number, unit = ''): string {
  return `<= ${goal}${unit} ${value <= goal ? 'yes' : 'NO'}`;
}

/** Rows in columns. */
export function table(rows: readonly Row[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Three digits that count. */
export function digits(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en', { maximumFractionDigits: 2 });
}

function rawFirst(a: string, b: string): number {
  return Number(b === 'raw') - Number(a === 'raw');
}
