/** All detectors by the names that options use. */
import { parsePattern } from '../patterns/parse.ts';
import type { Pattern } from '../patterns/matcher.ts';
import { personDetectors, type Detector } from './persons.ts';
import { secretDetectors } from './secrets.ts';

const detectors: Readonly<Record<string, Detector>> = { ...personDetectors, ...secretDetectors };

const nationalIds = Object.keys(personDetectors).filter((name) => /^[a-z]{2}-/.test(name));

/** Names that stand for several detectors. */
const groups: Readonly<Record<string, readonly string[]>> = {
  all: Object.keys(detectors),
  persons: Object.keys(personDetectors),
  'national-ids': nationalIds,
  secrets: Object.keys(secretDetectors),
};

/** A name that the option `entities` takes. */
export type EntityName =
  | 'all'
  | 'persons'
  | 'national-ids'
  | 'secrets'
  | keyof typeof personDetectors
  | keyof typeof secretDetectors;

/** Every name that the option `entities` takes. */
export const entityNames = [...Object.keys(groups), ...Object.keys(detectors)] as [
  EntityName,
  ...EntityName[],
];

/** A pattern and what stands in its placeholders. */
export type LabelledPattern = Pattern & { readonly label: string };

const parsed = new Map<string, LabelledPattern>();

/** Returns the patterns of entities, each once, in the order of the table. */
export function entityPatterns(names: readonly string[]): readonly LabelledPattern[] {
  const wanted = new Set(names.flatMap((name) => groups[name] ?? [name]));
  return Object.entries(detectors).flatMap(([name, detector]) =>
    wanted.has(name) ? [patternOf(name, detector)] : [],
  );
}

function patternOf(name: string, { label, pattern, ignoreCase, validate }: Detector): LabelledPattern {
  let known = parsed.get(name);
  if (known === undefined) {
    known = {
      label,
      node: parsePattern(pattern, ignoreCase),
      ...(validate === undefined ? {} : { validate: (match: string) => validate(match) }),
    };
    parsed.set(name, known);
  }
  return known;
}
