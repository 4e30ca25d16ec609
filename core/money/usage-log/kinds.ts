/** Writes values that many calls have in common once: names, formats, how they ended and the price. */
import { createHash } from 'node:crypto';

const day = 86_400_000;

/** Maximum number of kinds that a process writes on one day. Further records are written with all of their names. */
const mostKinds = 2_000;

const columns = [
  'operation',
  'format',
  'upstream_format',
  'model',
  'upstream_model',
  'channel',
  'code',
  'ended',
  'price',
] as const;

/** Values of a call that many calls have in common, by column. */
export interface Kind {
  /** Made from the values, so that nobody has to ask for it. */
  readonly id: number;
  readonly values: readonly (string | null)[];
  /**
   * True when the database had it, of this day, before our transaction: others may rely on it then. What our own transaction writes is gone
   * when it fails.
   */
  isThere: boolean;
}

/** The kinds of a database, as one process knows them. */
export class Kinds {
  readonly #kinds = new Map<string, Kind>();
  /** Days since 1970. Kinds are written anew on each day that uses them, so that those of no record can be removed. */
  today = 0;
  /** Ids of {@link Owners} that the database had, of this day, before our transactions. */
  readonly owners = new Set<number>();

  /** Forgets what was written on another day. */
  turnDay(): void {
    const today = Math.floor(Date.now() / day);
    if (today === this.today) return;
    this.today = today;
    this.#kinds.clear();
    this.owners.clear();
  }

  /** Returns the kind with these values; undefined when there are too many. */
  of(values: readonly (string | null)[]): Kind | undefined {
    this.turnDay();
    let text = '';
    // No text has a zero character: see `clean`.
    for (const value of values) text += value === null ? '\0' : `=${value}\0`;
    let kind = this.#kinds.get(text);
    if (kind === undefined) {
      if (this.#kinds.size >= mostKinds) return undefined;
      const id = idOf(text);
      this.#kinds.set(text, (kind = { id, values, isThere: false }));
    }
    return kind;
  }
}

/** Returns the number of a text: as many bits of its hash as a number of JavaScript holds. */
export function idOf(text: string): number {
  return Number(createHash('sha256').update(text).digest().readBigUInt64BE() >> 11n);
}

/** Returns those of the kinds that may not be in the database yet, each once and in one order, so that no two transactions wait for each other. */
export function unwritten(kinds: readonly (Kind | undefined)[]): readonly Kind[] {
  const found = new Set<Kind>();
  for (const kind of kinds) if (kind !== undefined && !kind.isThere) found.add(kind);
  return found.size < 2 ? [...found] : [...found].toSorted((one, other) => one.id - other.id);
}

const seen =
  'ON CONFLICT (id) DO UPDATE SET last_day = excluded.last_day WHERE usage_kinds.last_day < excluded.last_day';

/** Writes one kind; changes nothing when it is there. Values: id, those of the columns, the day. */
export const kindInsertion = `INSERT INTO usage_kinds (id, ${columns.join(', ')}, last_day) VALUES (?, ${columns.map(() => '?').join(', ')}, ?) ${seen}`;

/** The same for rows of {@link rowOfKind}, as JSON; gives the ids of those that were not there. */
export const kindsInsertion = `INSERT INTO usage_kinds SELECT * FROM json_populate_recordset(NULL::usage_kinds, $1::json) ${seen} RETURNING id`;

/** A kind as a row. */
export function rowOfKind(
  id: number,
  values: readonly (string | null)[],
  today: number,
): Readonly<Record<string, string | number | null>> {
  return {
    id,
    last_day: today,
    ...Object.fromEntries(columns.map((name, index) => [name, values[index] ?? null])),
  };
}
