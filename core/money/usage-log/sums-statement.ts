/** Statements that add up groups and list the first of them. */
import type { Database } from '../../state/database/index.ts';
import { sumIn } from './added-up.ts';
import { countOfFolds } from './folded.ts';
import type { UsedFold } from './folds.ts';
import type { Source } from './narrowing.ts';
import type { Group } from './sums-grouping.ts';
import type { KeysInOrder } from './sums-source.ts';

/** Which groups a statement lists. */
export interface Listed {
  readonly limit: number;
  readonly order: 'cost' | 'calls';
  /** Folds that it reads. Each row has the number of those that there are still. */
  readonly used: readonly UsedFold[];
}

/** Amounts of each row, by the columns that they are added up from. */
const amounts = {
  calls: 'calls',
  failed: 'failed_calls',
  refused: 'refused_calls',
  input: 'input',
  output: 'output',
  micro_dollars: 'micro_dollars',
  charged_more: 'charged_more',
} as const;
const own = Object.keys(amounts).join(', ');

function addedIn(kind: Database['kind'], columns: Readonly<Record<string, string>>): string {
  const sum = sumIn(kind);
  return Object.entries(columns)
    .map(([name, column]) => `${sum(column)} AS ${name}`)
    .join(', ');
}

function firstOf({ order, limit }: Listed, last: string): string {
  const [first, second] = order === 'cost' ? ['micro_dollars', 'calls'] : ['calls', 'micro_dollars'];
  return ` ORDER BY ${first} DESC, ${second} DESC, ${last} LIMIT ${Math.trunc(limit)}`;
}

/** Returns the statement that lists groups, and in its last row, which has no name, all groups together. Times are bounded by who asks for them. */
export function groupsStatement(
  kind: Database['kind'],
  { sql, values }: Source,
  { sql: group, columns, order: place, name, bucket }: Group,
  listed: Listed,
): Source {
  const all = Object.fromEntries(Object.keys(amounts).map((column) => [column, column]));
  const folds = countOfFolds(listed.used);
  // Of many groups the first are found without the others being put in order.
  return {
    sql: `WITH source AS (${sql}),
     groups AS (SELECT ${columns}, ${addedIn(kind, amounts)} FROM source GROUP BY ${group}),
     listed AS (SELECT * FROM groups${bucket === undefined ? firstOf(listed, place) : ''})
     SELECT ${name} AS name, 1 AS listed, 1 AS groups, ${own}, ${folds} AS folds FROM listed
     UNION ALL SELECT NULL, 0, COUNT(*), ${addedIn(kind, all)}, ${folds} FROM groups`,
    values,
  };
}

/**
 * As {@link groupsStatement}, for keys. The first keys are found by two amounts, and all amounts are added up of these alone, because there may be
 * very many keys. `whole`: rows of all calls that the keys have, which other sums have in far fewer rows; absent where nobody asks for them.
 */
export function keysStatement(
  kind: Database['kind'],
  { others, compared, listed: ofListed }: KeysInOrder,
  whole: Source | undefined,
  listed: Listed,
): Source {
  const sum = sumIn(kind);
  const folds = countOfFolds(listed.used);
  const count = '(SELECT COUNT(*) FROM groups)';
  const together =
    whole === undefined
      ? `SELECT NULL, 0, ${count}, ${own.replaceAll(/\w+/g, '0')}, ${folds}`
      : `SELECT NULL, 0, ${count}, ${addedIn(kind, amounts)}, ${folds} FROM (${whole.sql}) AS rows_of_all`;
  return {
    sql: `WITH others AS MATERIALIZED (${others.sql}),
     groups AS MATERIALIZED (
       SELECT key, ${sum('calls')} AS calls, COALESCE(${sum('micro_dollars')}, 0) AS micro_dollars FROM (${compared.sql}) AS compared GROUP BY key),
     listed AS MATERIALIZED (SELECT key FROM groups${firstOf(listed, 'key')})
     ${chosenKeys(kind, ofListed.sql, folds)}
     UNION ALL ${together}`,
    values: [...others.values, ...compared.values, ...ofListed.values, ...(whole?.values ?? [])],
  };
}

/**
 * As {@link groupsStatement}, for more keys than are looked up. Each key has one row of sums, which is not added up once more unless `others` has one,
 * too.
 */
export function allKeysStatement(
  kind: Database['kind'],
  { others, all }: KeysInOrder,
  listed: Listed,
): Source {
  const columns = Object.values(amounts).join(', ');
  const renamed = Object.entries(amounts)
    .map(([name, column]) => `${column} AS ${name}`)
    .join(', ');
  const added = Object.fromEntries(Object.keys(amounts).map((column) => [column, column]));
  const folds = countOfFolds(listed.used);
  const inOthers = 'IN (SELECT o.key FROM others o)';
  return {
    sql: `WITH others AS MATERIALIZED (${others.sql}),
     summed AS MATERIALIZED (${all.sql}),
     groups AS MATERIALIZED (
       SELECT key, ${renamed} FROM summed WHERE NOT key ${inOthers}
       UNION ALL SELECT key, ${addedIn(kind, amounts)} FROM (
         SELECT key, ${columns} FROM summed WHERE key ${inOthers} UNION ALL SELECT key, ${columns} FROM others) AS of_both GROUP BY key),
     listed AS (SELECT * FROM groups${firstOf(listed, 'key')})
     SELECT ${keyName('listed')} AS name, 1 AS listed, 1 AS groups, ${own}, ${folds} AS folds FROM listed
     UNION ALL SELECT NULL, 0, COUNT(*), ${addedIn(kind, added)}, ${folds} FROM groups`,
    values: [...others.values, ...all.values],
  };
}

/** As {@link keysStatement}, for some keys by their ids; `others` has only these. */
export function chosenKeysStatement(
  kind: Database['kind'],
  { others, listed: ofListed }: KeysInOrder,
  ids: readonly string[],
  { used }: Listed,
): Source {
  const among = ids.map(() => '?').join();
  const folds = countOfFolds(used);
  return {
    sql: `WITH others AS MATERIALIZED (${others.sql}),
     listed AS MATERIALIZED (
       SELECT id AS key FROM usage_keys WHERE key_id IN (${among}) UNION ALL SELECT key FROM others WHERE key < 0)
     ${chosenKeys(kind, ofListed.sql, folds)}
     UNION ALL SELECT NULL, 0, 0, ${own.replaceAll(/\w+/g, '0')}, ${folds}`,
    values: [...others.values, ...ids, ...ofListed.values],
  };
}

/** SELECT of the keys of `listed`. `rows`: SELECT of what there is of these. */
function chosenKeys(kind: Database['kind'], rows: string, folds: string): string {
  return `SELECT ${keyName('chosen')} AS name, 1 AS listed, 1 AS groups, ${own}, ${folds} AS folds
     FROM (SELECT key, ${addedIn(kind, amounts)} FROM (${rows}) AS rows_of_listed GROUP BY key ORDER BY key) AS chosen`;
}

/** SQL for the id of the key of a row: a key in `others` may have no number. */
function keyName(table: string): string {
  return `COALESCE((SELECT k.key_id FROM usage_keys k WHERE k.id = ${table}.key), (SELECT o.key_id FROM others o WHERE o.key = ${table}.key))`;
}
