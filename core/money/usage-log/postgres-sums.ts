/** PostgreSQL statements that add usage records to the sums of all levels in `usage_totals`. */
import { firstSubjectFold } from './folds.ts';
import { isRefused } from './narrowing.ts';
import { amounts, dimensions, largestStart, largestSum, levels, minute, type Dimension } from './levels.ts';

/** SQL for a sum, capped to the range of its column. */
const sum = (value: string): string => `LEAST(SUM(${value}), ${largestSum})::bigint`;

const levelRows = levels
  .map(
    ({ level, size, hasNames, hasKeys }) =>
      `SELECT ${level} AS level, ${size} AS size, ${Number(hasNames)} AS names, ${Number(hasKeys)} AS keys`,
  )
  .join(' UNION ALL ');

const key = `level, start, ${dimensions.join(', ')}`;
const names = 'model, channel, format, operation, status, failed';

/** SQL that adds an amount of an existing and a new sum; NULL is zero. */
const both = (name: string): string =>
  `NULLIF(LEAST(COALESCE(usage_totals.${name}, 0)::numeric + COALESCE(excluded.${name}, 0), ${largestSum})::bigint, 0)`;

/**
 * SQL that writes the rows of `summed`, which have the columns of `usage_sums`, to `usage_totals`. Ids are counted here and not by the server,
 * because a copy of the tables would not have its counters.
 */
const writing = `
    wanted_names AS (SELECT ${names}, MAX(start / 86400000)::integer AS last_day FROM summed GROUP BY ${names}),
    known_names AS (SELECT id, ${names} FROM usage_names JOIN (SELECT ${names} FROM wanted_names) AS wanted USING (${names})),
    seen_names AS (
      UPDATE usage_names AS n SET last_day = w.last_day FROM wanted_names w
      WHERE ${names
        .split(', ')
        .map((name) => `n.${name} = w.${name}`)
        .join(' AND ')} AND n.last_day < w.last_day
    ),
    added_names AS (
      INSERT INTO usage_names (id, ${names}, last_day)
      SELECT (SELECT COALESCE(MAX(id), 0) FROM usage_names) + ROW_NUMBER() OVER (), ${names}, last_day
      FROM wanted_names WHERE (${names}) NOT IN (SELECT ${names} FROM known_names) RETURNING id, ${names}
    ),
    wanted_keys AS (SELECT key_id, MAX(start / 86400000)::integer AS last_day FROM summed WHERE level >= 5 GROUP BY key_id),
    known_keys AS (SELECT id, key_id FROM usage_keys JOIN (SELECT key_id FROM wanted_keys) AS wanted USING (key_id)),
    seen_keys AS (
      UPDATE usage_keys AS k SET last_day = w.last_day FROM wanted_keys w WHERE k.key_id = w.key_id AND k.last_day < w.last_day
    ),
    added_keys AS (
      INSERT INTO usage_keys (id, key_id, last_day)
      SELECT (SELECT COALESCE(MAX(id), 0) FROM usage_keys) + ROW_NUMBER() OVER (), key_id, last_day
      FROM wanted_keys WHERE key_id NOT IN (SELECT key_id FROM known_keys) RETURNING id, key_id
    ),
    names AS (SELECT * FROM known_names UNION ALL SELECT * FROM added_names),
    keys AS (SELECT * FROM known_keys UNION ALL SELECT * FROM added_keys),
    unfolded AS (
      DELETE FROM usage_folds AS f WHERE f.level < ${firstSubjectFold} AND f.until > (SELECT MIN(start) / ${minute} FROM summed)
        AND EXISTS (SELECT 1 FROM summed WHERE summed.start / ${minute} >= f.start AND summed.start / ${minute} < f.until)
    )
    INSERT INTO usage_totals (level, start, key, names, calls, ${amounts.join(', ')}, bins)
    SELECT level, GREATEST(0, LEAST(start / ${minute}, ${largestStart}))::integer, COALESCE(keys.id, 0), names.id, calls,
      ${amounts.map((name) => `NULLIF(${name}, 0)`).join(', ')}, translate(NULLIF(bins, '{}')::text, ' ', '')
    FROM summed JOIN names USING (${names}) LEFT JOIN keys ON level >= 5 AND keys.key_id = summed.key_id ORDER BY 1, 2, 3, 4
    ON CONFLICT (level, start, key, names) DO UPDATE SET
      calls = LEAST(usage_totals.calls::numeric + excluded.calls, ${largestSum})::bigint,
      ${amounts.map((name) => `${name} = ${both(name)}`).join(', ')},
      bins = CASE WHEN excluded.bins IS NULL THEN usage_totals.bins ELSE translate((
        SELECT there || (
          SELECT jsonb_object_agg(key, value::bigint + COALESCE((there ->> key)::bigint, 0)) FROM jsonb_each_text(excluded.bins::jsonb))
        FROM (SELECT COALESCE(usage_totals.bins, '{}')::jsonb AS there OFFSET 0) AS read_once)::text, ' ', '') END`;

/**
 * SQL that adds rows to the sums of all levels, as `addInSqlite` does, inside the server. `source` gives rows with the columns
 * of `usage_unsummed`. Its only value besides those of `source` is the time from which on sums of minutes are made.
 */
export function additionInPostgres(source: string): string {
  const dimension = (name: Dimension): string => {
    if (name === 'failed') return 'failed';
    if (name === 'key_id') return "CASE WHEN keys = 1 THEN key_id ELSE '' END AS key_id";
    if (name === 'status')
      return `CASE WHEN names = 1 THEN status WHEN ${isRefused()} THEN 400 ELSE 0 END AS status`;
    return `CASE WHEN names = 1 THEN ${name} ELSE '' END AS ${name}`;
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
    ),
    summed AS MATERIALIZED (
      SELECT ${key}, ${sum('CASE WHEN is_first = 1 THEN 0 ELSE calls END')} AS calls,
        ${amounts.map((name) => `${sum(name)} AS ${name}`).join(', ')},
        jsonb_object_agg(bin, calls) FILTER (WHERE bin IS NOT NULL) AS bins
      FROM bins GROUP BY ${key}
    ),${writing}`;
}

/** SQL that moves sums of a level to `usage_totals`: those from a time on, the oldest first, as many as its last value says. */
export const movingInPostgres = `WITH moved AS (
      SELECT ctid FROM usage_sums WHERE level = ? AND start >= ? ORDER BY start LIMIT ?
    ),
    summed AS (DELETE FROM usage_sums WHERE ctid = ANY(ARRAY(SELECT ctid FROM moved)) RETURNING *),${writing}
    RETURNING start`;
