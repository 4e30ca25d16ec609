import { acceptedEntry, type Accepted } from './accepted.ts';
import { interval } from './sample.ts';
import { describeMutant, hasSurvived, type Tried } from './try-mutants.ts';

/** Share of mutants that the tests of a folder are to kill. */
export const goal = 0.85;

/** Result of one folder. */
export interface Score {
  readonly folder: string;
  /** Mutants in the folder. */
  readonly all: number;
  /** Mutants of the sample without accepted survivors. */
  readonly tried: number;
  readonly killed: number;
}

/** Counts the sample of a folder. Accepted survivors do not count, because nothing outside can tell them from the code. */
export function scoreOf(folder: string, all: number, sample: readonly Tried[]): Score {
  const counted = sample.filter(({ mutant }) => acceptedEntry(mutant) === undefined);
  const killed = counted.filter((one) => !hasSurvived(one)).length;
  return { folder, all, tried: counted.length, killed };
}

/** `folder: 52 of 60 killed (87 %, 95 % interval 76 to 93 %), of 2519 mutants` */
export function scoreLine({ folder, all, tried, killed }: Score): string {
  const percent = (share: number): number => Math.round(share * 100);
  const [low, high] = interval(killed, tried).map(percent);
  return `${folder}: ${killed} of ${tried} killed (${percent(killed / Math.max(1, tried))} %, 95 % interval ${low} to ${high} %), of ${all} mutants`;
}

/** One line for each survivor that is not accepted. */
export function survivorLines(tried: readonly Tried[]): string[] {
  return tried
    .filter((one) => hasSurvived(one) && acceptedEntry(one.mutant) === undefined)
    .map((one) => `${one.fate}: ${describeMutant(one.mutant)}`)
    .toSorted();
}

/** One line for each accepted survivor that a test kills. */
export function killedLines(tried: readonly Tried[]): string[] {
  return tried
    .filter((one) => !hasSurvived(one) && acceptedEntry(one.mutant) !== undefined)
    .map((one) => `is killed, take it out of accepted.ts: ${describeMutant(one.mutant)}`);
}

/** One line for each accepted survivor whose code is gone. */
export function goneLines(entries: readonly Accepted[]): string[] {
  return entries.map(
    ({ file, original, replacement }) =>
      `fits no code, take it out of accepted.ts: ${file}: ${original} -> ${replacement}`,
  );
}
