import type { Mutant } from './mutants.ts';

/** A mutant that no test can or should kill. */
export interface Accepted {
  /** Path from the root of the repository. */
  readonly file: string;
  /** The code that is replaced and what stands there instead, as the list of survivors prints them. */
  readonly original: string;
  readonly replacement: string;
  /** Why the mutant does the same as the code, for everybody outside. */
  readonly reason: string;
}

/** Mutants that are known to survive, each with its reason. An entry that is killed, or that fits no code, is an error. */
export const accepted: readonly Accepted[] = [];

/** Returns the entry for a mutant. */
export function acceptedEntry(
  { file, original, replacement }: Mutant,
  entries: readonly Accepted[] = accepted,
): Accepted | undefined {
  return entries.find(
    (entry) => entry.file === file && entry.original === original && entry.replacement === replacement,
  );
}

/** Returns the entries below the folders that fit none of the mutants in them. */
export function withoutMutant(
  mutants: readonly Mutant[],
  isBelow: (file: string) => boolean,
  entries: readonly Accepted[] = accepted,
): Accepted[] {
  return entries.filter(
    (entry) => isBelow(entry.file) && !mutants.some((mutant) => acceptedEntry(mutant, [entry])),
  );
}
