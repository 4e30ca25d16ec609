import { amounts, dimensions, largestSum, levels, minute, type Dimension } from './levels.ts';

/** A sum that no column is too small for. */
const sum = (value: string): string => `LEAST(SUM(${value}), ${largestSum})::bigint`;

const levelRows = levels
  .map(
    ({ level, size, hasNames, hasKeys }) =>
      `SELECT ${level} AS level, ${size} AS size, ${Number(hasNames)} AS names, ${Number(hasKeys)} AS keys`,
  )
  .join(' UNION ALL ');

/**
 * SQL that adds rows to the sums of all levels, as `addInSqlite` does: the server adds up what it holds. `source` gives rows with the columns
 * of `usage_unsummed`. Its only value besides those of `source` is the time from which on sums of minutes are made.
 */
export function additionInPostgres(source: string): string {
  const key = `level, start, ${dimensions.join(', ')}`;
  const dimension = (name: Dimension): string => {
    if (name === 'failed') return 'failed';
    if (name === 'key_id') return "CASE WHEN keys = 1 THEN key_id ELSE '' END AS key_id";
    return `CASE WHEN names = 1 THEN ${name} ELSE ${name === 'status' ? '0' : "''"} END AS ${name}`;
  };
  const added = amounts.map((name) => `SUM(${name}::numeric) AS ${name}`).join(', ');
  const alike = [...dimensions, 'ms_bin', 'first_bin'].join(', ');
  // Calls of a minute that are alike are added up first, because each row is read for all levels: once for its duration, with the amounts,
  // and once for the time until its first event.
  return `WITH source AS (${source}),
    minutes AS (
      SELECT at - at % ${minute} AS minute, ${alike}, COUNT(*) AS calls, ${added}
      FROM source GROUP BY minute, ${alike}
    ),
    parts AS (
      SELECT level, minute - minute % size AS start, ${dimensions.map(dimension).join(', ')}, is_first,
        CASE WHEN keys = 1 THEN NULL WHEN is_first = 1 THEN 'f' || first_bin ELSE CAST(ms_bin AS TEXT) END AS bin, calls,
        ${amounts.map((name) => `CASE WHEN is_first = 1 THEN 0 ELSE ${name} END AS ${name}`).join(', ')}
      FROM minutes CROSS JOIN (${levelRows}) AS levels CROSS JOIN (SELECT 0 AS is_first UNION ALL SELECT 1) AS measures
      WHERE (is_first = 0 OR (keys = 0 AND first_bin IS NOT NULL)) AND (size > ${minute} OR minute >= ?)
    ),
    bins AS (
      SELECT ${key}, is_first, bin, SUM(calls) AS calls, ${added}
      FROM parts GROUP BY ${key}, is_first, bin
    )
    INSERT INTO usage_sums (${key}, calls, ${amounts.join(', ')}, bins)
    SELECT ${key}, ${sum('CASE WHEN is_first = 1 THEN 0 ELSE calls END')}, ${amounts.map((name) => sum(name)).join(', ')},
      COALESCE(jsonb_object_agg(bin, calls) FILTER (WHERE bin IS NOT NULL), '{}')
    FROM bins GROUP BY ${key} ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE SET
      ${['calls', ...amounts].map((name) => `${name} = LEAST(usage_sums.${name}::numeric + excluded.${name}, ${largestSum})::bigint`).join(', ')},
      bins = usage_sums.bins || COALESCE((SELECT jsonb_object_agg(key, value::bigint + COALESCE((usage_sums.bins ->> key)::bigint, 0))
        FROM jsonb_each_text(excluded.bins)), '{}')`;
}
