/**
 * Fills a PostgreSQL with many millions of calls and with their sums as a gateway would have made them: without triggers, with indexes that
 * are made afterwards.
 */
import { hour, levels, minute } from '../../core/money/usage-log/levels.ts';
import { creationOf, partitionIndexes } from '../../core/money/usage-log/partition-indexes.ts';
import { subjectKinds, subjectLevel, type SubjectKind } from '../../core/money/usage-log/subjects.ts';
import { attemptsOf, callsIn, insertedColumns, insertedValues, kindColumns, wordsOfKind } from './fill.ts';
import type { Age, Statements } from './statements.ts';

const day = 24 * hour;
const batch = 500_000;
const amounts = ['input', 'output', 'cache_read', 'cache_write', 'reasoning', 'micro_dollars'];

/** Writes the calls of an age, the newest of them at a time in milliseconds since 1970, and their sums. */
export async function fillQuickly(statements: Statements, age: Age, now: number): Promise<void> {
  const { run } = statements;
  const partitions = await run(
    "SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'usage_records'::regclass",
  );
  const places = partitionIndexes.usage_records.keys().toArray();
  for (const { name } of partitions)
    for (const place of places) await run(`DROP INDEX IF EXISTS ${String(name)}_${place}`);
  await run('ALTER TABLE usage_records DISABLE TRIGGER USER');
  await run('CREATE TABLE filled_kinds (id INTEGER PRIMARY KEY, words TEXT UNIQUE)');
  for (let from = 0; from < age.calls; from += batch) {
    await run(
      `CREATE TEMPORARY TABLE filled AS SELECT *, ${wordsOfKind} AS words
       FROM (${callsIn(false, from, Math.min(age.calls, from + batch) - 1, age, now)}) AS calls`,
    );
    await run(
      `INSERT INTO filled_kinds (id, words) SELECT (SELECT COUNT(*) FROM filled_kinds) + ROW_NUMBER() OVER (), words
       FROM (SELECT DISTINCT words FROM filled) AS given WHERE words NOT IN (SELECT words FROM filled_kinds)`,
    );
    await run(
      `INSERT INTO usage_kinds (id, ${kindColumns.join(', ')}, last_day)
       SELECT k.id, ${kindColumns.map((name) => `MAX(${name})`).join(', ')}, ${Math.floor(now / day)}
       FROM filled f JOIN filled_kinds k ON k.words = f.words WHERE k.id NOT IN (SELECT id FROM usage_kinds) GROUP BY k.id`,
    );
    await run(
      `INSERT INTO usage_records (${insertedColumns(true)}) SELECT ${insertedValues(true)}
       FROM filled f JOIN filled_kinds k ON k.words = f.words`,
    );
    await run(attemptsOf('filled'));
    await run('DROP TABLE filled');
  }
  await run('ALTER TABLE usage_records ENABLE TRIGGER USER');
  for (const { name } of partitions)
    for (const place of places) await run(creationOf('usage_records', place, String(name)));
  await fillSumsQuickly(statements, age, now);
  await run('VACUUM ANALYZE');
}

/** Indexes of sums that are made when all sums are there. */
const sumIndexes = {
  usage_totals_pkey: 'ALTER TABLE usage_totals ADD PRIMARY KEY (level, start, key, names)',
  usage_totals_key: 'CREATE INDEX usage_totals_key ON usage_totals (key, start) WHERE level >= 5',
  usage_subject_totals_pkey:
    'ALTER TABLE usage_subject_totals ADD PRIMARY KEY (level, start, subject, names)',
  usage_subject_totals_subject:
    'CREATE INDEX usage_subject_totals_subject ON usage_subject_totals (subject, level, start)',
} as const;

/** Adds up the calls of each day, from one on: the number of days since 1970. `done` is told each day that was added. */
export async function fillSumsQuickly(
  { run }: Statements,
  { days }: Age,
  now: number,
  from = 0,
  done: (day: number) => void = () => {},
): Promise<void> {
  const lastDay = Math.floor(now / day);
  const firstDay = Math.max(from, lastDay - days);
  if (firstDay === lastDay - days) {
    for (const [index, text] of Object.entries(sumIndexes))
      await run(
        text.startsWith('ALTER')
          ? `ALTER TABLE ${index.replace('_pkey', '')} DROP CONSTRAINT IF EXISTS ${index}`
          : `DROP INDEX IF EXISTS ${index}`,
      );
    await run(
      `INSERT INTO usage_keys (id, key_id, last_day) SELECT ROW_NUMBER() OVER (), key_id, ${lastDay}
       FROM (SELECT DISTINCT value::json->'value'->>'id' AS key_id FROM keyv WHERE namespace = 'api-keys') AS keys`,
    );
    await run(
      `INSERT INTO usage_names (id, ${names}, last_day) VALUES (1, '', '', '', '', 0, 0, ${lastDay}), (2, '', '', '', '', 0, 1, ${lastDay}),
         (3, '', '', '', '', 400, 1, ${lastDay})`,
    );
  }
  for (let today = firstDay; today <= lastDay; today += 1) {
    await run('BEGIN');
    await addDay(run, today, lastDay);
    await run('COMMIT');
    done(today);
  }
  for (const text of Object.values(sumIndexes)) await run(text);
}

const names = 'model, channel, format, operation, status, failed';
const list = amounts.join(', ');
const sums = amounts.map((name) => `SUM(${name})::bigint AS ${name}`).join(', ');
/** Amounts of one call are small: sums of small numbers are several times as fast. */
const smallSums = amounts.map((name) => `SUM(${name}::integer) AS ${name}`).join(', ');
const failed = `CASE WHEN status >= 400 OR k.ended = 'interrupted' THEN 1 ELSE 0 END`;
/** The ids of names of calls that went well, failed, and were refused. */
const unnamed = `CASE WHEN ${failed} = 0 THEN 1 WHEN k.channel IS NULL AND status BETWEEN 400 AND 498 THEN 3 ELSE 2 END`;
const isEdge = (daysAgo: number): boolean => daysAgo <= 2 || [6, 7, 8, 15, 16, 29, 30].includes(daysAgo);

/**
 * Adds up the calls of a day. Sums of hours by keys, and those of subjects with names, are made of the days that questions begin in, except those of
 * organisations.
 */
async function addDay(run: Statements['run'], today: number, lastDay: number): Promise<void> {
  const start = (today * day) / minute;
  const inDay = `at >= ${today * day} AND at < ${(today + 1) * day}`;
  await addNamed(run, inDay, today, lastDay);
  const group = (table: string, columns: string, by: string): Promise<unknown> =>
    run(
      `CREATE TEMPORARY TABLE ${table} ON COMMIT DROP AS SELECT ${columns}, COUNT(*) AS calls, ${smallSums}
       FROM usage_records r JOIN usage_kinds k ON k.id = r.kind WHERE ${inDay} GROUP BY ${by}`,
    );
  const h = `at / ${hour} * ${hour / minute}`;
  await group('of_keys', `key_id, owners, ${unnamed} AS names`, '1, 2, 3');
  await run(
    `INSERT INTO usage_totals (level, start, key, names, calls, ${list})
     SELECT 6, ${start}, k.id, g.names, SUM(calls), ${sums} FROM of_keys g JOIN usage_keys k USING (key_id) GROUP BY 3, 4 ORDER BY 3, 4`,
  );
  await group('of_owners', `${h} AS h, owners, ${unnamed} AS names`, '1, 2, 3');
  await group('of_tags', `${h} AS h, tags::json->>0 AS tag, ${unnamed} AS names`, '1, 2, 3');
  await group('of_users', `${h} AS h, end_user, ${unnamed} AS names`, '1, 2, 3');
  for (const [kind, subject, table] of subjects) {
    const number = subjectKinds[kind];
    const from = `${table} g${table === 'of_keys' || table === 'of_owners' ? ' LEFT JOIN usage_owners o ON o.id = g.owners' : ''}`;
    const own = (column: string, ...of: readonly SubjectKind[]): string =>
      of.includes(kind) ? `MAX(${column})` : 'NULL';
    await run(
      `INSERT INTO usage_subjects (id, kind, subject, key_id, team, member, organisation, last_day)
       SELECT (SELECT COALESCE(MAX(id), 0) FROM usage_subjects) + ROW_NUMBER() OVER (), ${number}, s.*, ${lastDay}
       FROM (SELECT ${subject} AS subject, ${own('g.key_id', 'bearer')}, ${own('o.team', 'bearer', 'team')}, ${own('o.member', 'bearer', 'member')},
             ${own('o.organisation', 'bearer', 'team', 'member')} FROM ${from} WHERE ${subject} IS NOT NULL GROUP BY 1) AS s
       WHERE NOT EXISTS (SELECT 1 FROM usage_subjects t WHERE t.kind = ${number} AND t.subject = s.subject)`,
    );
    for (const size of table === 'of_keys' ? [day] : [hour, day])
      await run(
        `INSERT INTO usage_subject_totals (level, start, subject, names, calls, ${list})
         SELECT ${subjectLevel(kind, false, size)}, ${size === day ? start : 'g.h'}, s.id, g.names, SUM(calls), ${sums} FROM ${from}
         JOIN usage_subjects s ON s.kind = ${number} AND s.subject = ${subject} GROUP BY 2, 3, 4 ORDER BY 2, 3, 4`,
      );
  }
  const withNames = [
    ['organisation', 'o.organisation', hour],
    ['organisation', 'o.organisation', day],
    ['tag', 'tags::json->>0', day],
  ] as const;
  for (const [kind, subject, size] of withNames)
    await run(
      `INSERT INTO usage_subject_totals (level, start, subject, names, calls, ${list})
       SELECT ${subjectLevel(kind, true, size)}, h, s.id, n.id, g.calls, ${amounts.map((name) => `g.${name}`).join(', ')}
       FROM (SELECT ${size === day ? start : h} AS h, ${subject} AS subject, k.model, COALESCE(k.channel, '') AS channel, k.format, k.operation, status,
               ${failed} AS failed, COUNT(*) AS calls, ${smallSums}
             FROM usage_records r JOIN usage_kinds k ON k.id = r.kind LEFT JOIN usage_owners o ON o.id = r.owners WHERE ${inDay}
             GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) AS g
       JOIN usage_names n USING (${names}) JOIN usage_subjects s ON s.kind = ${subjectKinds[kind]} AND s.subject = g.subject ORDER BY 2, 3, 4`,
    );
  if (isEdge(lastDay - today)) await addEdge(run, inDay);
}

/** Adds sums of hours that have very many rows. */
async function addEdge(run: Statements['run'], inDay: string): Promise<void> {
  await run(
    `CREATE TEMPORARY TABLE of_all ON COMMIT DROP AS
     SELECT h, key_id, owners, tag, unnamed, n.id AS names, calls, ${amounts.map((name) => `g.${name}`).join(', ')}
     FROM (SELECT at / ${hour} * ${hour / minute} AS h, key_id, owners, tags::json->>0 AS tag, ${unnamed} AS unnamed, k.model, COALESCE(k.channel, '') AS channel,
             k.format, k.operation, status, ${failed} AS failed, COUNT(*) AS calls, ${smallSums}
           FROM usage_records r JOIN usage_kinds k ON k.id = r.kind WHERE ${inDay} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) AS g
     JOIN usage_names n USING (${names})`,
  );
  await run(
    `INSERT INTO usage_totals (level, start, key, names, calls, ${list})
     SELECT 5, h, k.id, g.names, SUM(calls), ${sums} FROM of_all g JOIN usage_keys k USING (key_id) GROUP BY 2, 3, 4 ORDER BY 2, 3, 4`,
  );
  for (const [kind, subject, table] of subjects) {
    const level = subjectLevel(kind, kind !== 'bearer', hour);
    if (level === undefined || kind === 'organisation' || table === 'of_users') continue;
    await run(
      `INSERT INTO usage_subject_totals (level, start, subject, names, calls, ${list})
       SELECT ${level}, h, s.id, g.${kind === 'bearer' ? 'unnamed' : 'names'}, SUM(calls), ${sums} FROM of_all g
       LEFT JOIN usage_owners o ON o.id = g.owners JOIN usage_subjects s ON s.kind = ${subjectKinds[kind]} AND s.subject = ${subject}
       GROUP BY 2, 3, 4 ORDER BY 2, 3, 4`,
    );
  }
}

/** Adds sums without keys, which count the times of calls: of minutes in the last three days, of hours and of days. */
async function addNamed(
  run: Statements['run'],
  inDay: string,
  today: number,
  lastDay: number,
): Promise<void> {
  const first = lastDay - today > 3 ? hour : minute;
  await run(
    `CREATE TEMPORARY TABLE times ON COMMIT DROP AS
     SELECT at / ${first} * ${first / minute} AS m, k.model, COALESCE(k.channel, '') AS channel, k.format, k.operation, status, ${failed} AS failed,
       ${unnamed} AS unnamed, ms_bin, first_bin, COUNT(*) AS calls, ${smallSums}
     FROM usage_records r JOIN usage_kinds k ON k.id = r.kind WHERE ${inDay} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10`,
  );
  await run(
    `INSERT INTO usage_names (id, ${names}, last_day)
     SELECT (SELECT MAX(id) FROM usage_names) + ROW_NUMBER() OVER (), ${names}, ${lastDay} FROM (SELECT DISTINCT ${names} FROM times) AS g
     WHERE (${names}) NOT IN (SELECT ${names} FROM usage_names)`,
  );
  const zeros = amounts.map(() => '0').join(', ');
  for (const { level, size, hasNames, hasKeys } of levels) {
    if (hasKeys || size < first) continue;
    const width = size / minute;
    const group = `SELECT m / ${width} * ${width} AS start, ${hasNames ? 'n.id' : 'unnamed'} AS names`;
    const from = `FROM times${hasNames ? ` JOIN usage_names n USING (${names})` : ''}`;
    await run(
      `INSERT INTO usage_totals (level, start, key, names, calls, ${list}, bins)
       SELECT ${level}, start, 0, names, SUM(calls), ${sums}, json_object_agg(bin, bins) FILTER (WHERE bin IS NOT NULL)
       FROM (
         ${group}, NULL AS bin, NULL AS bins, SUM(calls) AS calls, ${sums} ${from} GROUP BY 1, 2
         UNION ALL ${group}, ms_bin::text, SUM(calls), 0, ${zeros} ${from} GROUP BY 1, 2, 3
         UNION ALL ${group}, 'f' || first_bin, SUM(calls), 0, ${zeros} ${from} WHERE first_bin IS NOT NULL GROUP BY 1, 2, 3
       ) AS parts GROUP BY start, names ORDER BY start, names`,
    );
  }
}

/** Subjects, their texts in `usage_subjects`, and the table of a day that has them. */
const subjects: readonly (readonly [SubjectKind, subject: string, table: string])[] = [
  [
    'bearer',
    `g.key_id || ' ' || COALESCE(o.team, '') || ' ' || COALESCE(o.member, '') || ' ' || COALESCE(o.organisation, '')`,
    'of_keys',
  ],
  ['organisation', 'o.organisation', 'of_owners'],
  ['team', `o.team || ' ' || o.organisation`, 'of_owners'],
  ['member', `o.member || ' ' || o.organisation`, 'of_owners'],
  ['tag', 'g.tag', 'of_tags'],
  ['endUser', 'g.end_user', 'of_users'],
];
