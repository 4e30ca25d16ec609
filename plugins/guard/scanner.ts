/** Combines the patterns of several checks into one matcher, and caches matchers by the checks that they serve. */
import type { Check } from './checks.ts';
import type { LabelledPattern } from './detectors/index.ts';
import { Matcher, type Span } from './patterns/matcher.ts';
import { parsePattern } from './patterns/parse.ts';
import { placeholderEnd, placeholderStart } from './placeholders.ts';

/** A pattern and the check that it belongs to; none for placeholders that are restored. */
interface Row {
  readonly pattern: LabelledPattern;
  readonly check: Check | undefined;
}

/** Checks and label of a span. */
export interface Finding {
  /** Checks whose patterns match here, the longest match first. */
  readonly checks: readonly Check[];
  /** Label of the longest match. */
  readonly label: string;
  /** True where only a placeholder matches. */
  readonly isPlaceholder: boolean;
}

/** A matcher for the patterns of several checks. */
export class Scanner {
  readonly matcher: Matcher;
  readonly #rows: readonly Row[];

  constructor(checks: readonly Check[], labels: readonly string[] = []) {
    const rows: Row[] = checks.flatMap((check) => check.patterns.map((pattern) => ({ pattern, check })));
    if (labels.length > 0) rows.push({ pattern: placeholderPattern(labels), check: undefined });
    this.#rows = rows;
    const longest = checks.reduce((most, check) => Math.max(most, check.longest), labels.length > 0 ? 80 : 1);
    const groups = checks.length + 1;
    this.matcher = new Matcher(
      rows.map(({ pattern, check }) => ({
        ...pattern,
        group: check === undefined ? groups : checks.indexOf(check),
      })),
      longest,
    );
  }

  findingOf({ patterns }: Span): Finding {
    const rows = patterns.flatMap((index) => this.#rows[index] ?? []);
    const checks = [...new Set(rows.flatMap(({ check }) => check ?? []))];
    return {
      checks,
      label:
        (checks.length > 0 ? rows.find(({ check }) => check !== undefined) : rows[0])?.pattern.label ??
        'VALUE',
      isPlaceholder: checks.length === 0,
    };
  }
}

/** Stands for the labels of services, which are not known before they answer. */
export const anyLabel = '*';

function placeholderPattern(labels: readonly string[]): LabelledPattern {
  const line = String.raw`(?:\\?_| |-)`;
  const spelled = labels.map((label) =>
    label === anyLabel ? `[A-Z](?:[A-Z]|${line}){0,39}` : label.split('_').join(line),
  );
  return {
    label: 'PLACEHOLDER',
    node: parsePattern(`${placeholderStart}(?:${spelled.join('|')})${placeholderEnd}`, true),
  };
}

/** Maximum number of scanners that are kept. */
const maxScanners = 64;

/** Cache of scanners by the checks that they run, in the order of last use. */
export class Scanners {
  readonly #known = new Map<string, Scanner>();
  readonly #order: ReadonlyMap<Check, number>;

  constructor(checks: readonly Check[]) {
    this.#order = new Map(checks.map((check, index) => [check, index]));
  }

  of(checks: readonly Check[], labels: readonly string[] = []): Scanner {
    const key = `${checks.map((check) => this.#order.get(check)).join()}|${labels.join()}`;
    let scanner = this.#known.get(key);
    if (scanner === undefined) {
      scanner = new Scanner(checks, labels);
      const [oldest] = this.#known.keys();
      if (this.#known.size >= maxScanners && oldest !== undefined) this.#known.delete(oldest);
    } else this.#known.delete(key);
    this.#known.set(key, scanner);
    return scanner;
  }
}
