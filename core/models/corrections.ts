/** Reads the corrections of the catalogue: traits of models that another source states better. */
import { readFileSync } from 'node:fs';
import type { ModelTraits } from '../model/traits.ts';
import { matchesModel } from '../sdk/allowed-models.ts';

/** Traits that are known better than by the catalogue, with the day and the source. */
export interface Correction {
  /** Channel kinds that it is about. */
  readonly kinds: readonly string[];
  /** Names of models, as the kinds have them. A pattern counts only until a newer catalogue comes. */
  readonly models: readonly string[];
  readonly traits: ModelTraits;
  /** Day on which the source was read, `YYYY-MM-DD`. */
  readonly date: string;
  /** Address, or package with version and file. */
  readonly source: string;
}

let shipped: readonly Correction[] | undefined;

/** Returns the corrections that come with Sluice (`corrections.json`). Read on first use. */
export function shippedCorrections(): readonly Correction[] {
  shipped ??= JSON.parse(
    readFileSync(new URL('corrections.json', import.meta.url), 'utf8'),
  ) as readonly Correction[];
  return shipped;
}

/** Returns the corrections for a model of a channel kind, in order. `date` is the day of the catalogue. */
export function correctionsOf(kind: string, name: string, date: string): readonly Correction[] {
  return shippedCorrections().filter((one) => one.kinds.includes(kind) && isAbout(one, name, date));
}

/** Returns true when the correction counts for the model: it names the model exactly, or has a pattern and is no older than the catalogue. */
export function isAbout({ models, date: read }: Correction, name: string, date: string): boolean {
  return models.includes(name) || (read >= date && matchesModel(models, name));
}
