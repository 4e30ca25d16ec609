/** Tables that number names, keys and subjects, in both databases. */
import type { Database } from '../../state/database/index.ts';
import { rows, type Row, type Work } from '../../state/database/sql.ts';
import type { Value } from './subjects-of-call.ts';

type Columns = readonly (readonly [name: string, type: string])[];

/** Columns of `usage_names`, with their types. */
const nameColumns = [
  ['model', 'TEXT'],
  ['channel', 'TEXT'],
  ['format', 'TEXT'],
  ['operation', 'TEXT'],
  ['status', 'SMALLINT'],
  ['failed', 'SMALLINT'],
] as const;
const subjectColumns = [
  ['kind', 'SMALLINT'],
  ['subject', 'TEXT'],
  ['key_id', 'TEXT'],
  ['team', 'TEXT'],
  ['member', 'TEXT'],
  ['organisation', 'TEXT'],
] as const;

/** Names that a call is summed by. */
export function namedOf(call: Row): readonly Value[] {
  return nameColumns.map(([name]) => call[name] as Value);
}

/** SELECT of the rows of a JSON text: an array of arrays. `place` is the number of each. */
export function given(kind: Database['kind'], columns: Columns): string {
  return kind === 'sqlite'
    ? `SELECT key AS place, ${columns.map(([name], index) => `json_extract(value, '$[${index}]') AS ${name}`).join(', ')} FROM json_each(?)`
    : `SELECT place - 1 AS place, ${columns.map(([name, type], index) => `(value ->> ${index})::${type} AS ${name}`).join(', ')}
       FROM json_array_elements(?::json) WITH ORDINALITY AS given (value, place)`;
}

/** Statements that add rows to a table that numbers them, and that look their numbers up. */
export function numbering(
  kind: Database['kind'],
  table: string,
  columns: Columns,
  unique: readonly string[],
) {
  const names = columns.map(([name]) => name).join(', ');
  const withDay = given(kind, [...columns, ['last_day', 'INTEGER']]);
  const isSame = unique.map((name) => `t.${name} = g.${name}`).join(' AND ');
  const onConflict = `ON CONFLICT (${unique.join(', ')}) DO UPDATE SET last_day = excluded.last_day WHERE ${table}.last_day < excluded.last_day`;
  return {
    add:
      kind === 'sqlite'
        ? `INSERT INTO ${table} (${names}, last_day) SELECT ${names}, last_day FROM (${withDay}) AS g WHERE true ${onConflict}`
        : // Only those that are not there are numbered, because numbers of others would be lost.
          `WITH g AS (${withDay}),
           seen AS (UPDATE ${table} AS t SET last_day = g.last_day FROM g WHERE ${isSame} AND t.last_day < g.last_day)
           INSERT INTO ${table} (id, ${names}, last_day)
           SELECT (SELECT COALESCE(MAX(id), 0) FROM ${table}) + ROW_NUMBER() OVER (), ${names}, last_day
           FROM g WHERE NOT EXISTS (SELECT 1 FROM ${table} AS t WHERE ${isSame}) ${onConflict}`,
    find: `SELECT g.place, t.id FROM (${given(kind, columns)}) AS g JOIN ${table} t ON ${isSame}`,
  };
}

/** Statements for the tables that sums are numbered by. */
export function numberings(kind: Database['kind']) {
  return {
    names: numbering(
      kind,
      'usage_names',
      nameColumns,
      nameColumns.map(([name]) => name),
    ),
    keys: numbering(kind, 'usage_keys', [['key_id', 'TEXT']], ['key_id']),
    subjects: numbering(kind, 'usage_subjects', subjectColumns, ['kind', 'subject']),
  };
}

/** Rows of a table that numbers them, each once. */
export class Numbered {
  readonly #indexes = new Map<string, number>();
  readonly #rows: Value[][] = [];

  indexOf(values: readonly Value[], lastDay: number): number {
    const text = values.join('\0');
    let index = this.#indexes.get(text);
    if (index === undefined) {
      index = this.#rows.length;
      this.#indexes.set(text, index);
      this.#rows.push([...values, lastDay]);
      return index;
    }
    const found = this.#rows[index];
    if (found !== undefined) found[values.length] = Math.max(Number(found[values.length]), lastDay);
    return index;
  }

  /** Their numbers in the database, by their places. */
  *ids({ add, find }: ReturnType<typeof numbering>): Work<readonly number[]> {
    const text = JSON.stringify(this.#rows);
    yield* rows(add, text);
    const ids: number[] = [];
    for (const { place, id } of yield* rows(find, text)) ids[Number(place)] = Number(id);
    return ids;
  }
}
