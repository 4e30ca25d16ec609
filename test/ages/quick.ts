/**
 * Fills a PostgreSQL with many millions of calls and with their sums as a gateway would have made them: without triggers, with indexes that
 * are made afterwards. Sums have no durations, and those of minutes are left out.
 */
import { hour, minute } from '../../core/money/usage-log/levels.ts';
import { isRefused } from '../../core/money/usage-log/narrowing.ts';
import { creationOf, partitionIndexes } from '../../core/money/usage-log/partition-indexes.ts';
import { subjectKinds, type SubjectKind } from '../../core/money/usage-log/subjects.ts';
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
  await sum(statements, age, now);
  await run('VACUUM ANALYZE');
}

/** Adds up the calls of each day. */
async function sum({ run }: Statements, { days }: Age, now: number): Promise<void> {
  const lastDay = Math.floor(now / day);
  const sums = amounts.map((name) => `SUM(${name})::bigint AS ${name}`).join(', ');
  const names = 'model, channel, format, operation, status, failed';
  // The ids below: of calls that went well, failed, and were refused.
  const unnamed = `CASE WHEN g.failed = 0 THEN 1 WHEN ${isRefused('g.')} THEN 3 ELSE 2 END`;
  await run(
    `INSERT INTO usage_keys (id, key_id, last_day) SELECT ROW_NUMBER() OVER (), key_id, ${lastDay}
     FROM (SELECT DISTINCT value::json->'value'->>'id' AS key_id FROM keyv WHERE namespace = 'api-keys') AS keys`,
  );
  await run(
    `INSERT INTO usage_names (id, ${names}, last_day) VALUES (1, '', '', '', '', 0, 0, ${lastDay}), (2, '', '', '', '', 0, 1, ${lastDay}),
       (3, '', '', '', '', 400, 1, ${lastDay})`,
  );
  for (let today = lastDay - days; today <= lastDay; today += 1) {
    await run(
      `CREATE TEMPORARY TABLE grouped AS
       SELECT h, key_id, owners, tag, end_user, k.model, COALESCE(k.channel, '') AS channel, k.format, k.operation, status,
         CASE WHEN status >= 400 OR k.ended = 'interrupted' THEN 1 ELSE 0 END AS failed, calls, ${amounts.join(', ')}
       FROM (SELECT at / ${hour} * ${hour / minute} AS h, key_id, owners, tags::json->>0 AS tag, end_user, kind, status, COUNT(*) AS calls, ${sums}
             FROM usage_records WHERE at >= ${today * day} AND at < ${(today + 1) * day} GROUP BY 1, 2, 3, 4, 5, 6, 7) AS g
       JOIN usage_kinds k ON k.id = g.kind`,
    );
    await run(
      `INSERT INTO usage_names (id, ${names}, last_day)
       SELECT (SELECT MAX(id) FROM usage_names) + ROW_NUMBER() OVER (), ${names}, ${lastDay} FROM (SELECT DISTINCT ${names} FROM grouped) AS g
       WHERE (${names}) NOT IN (SELECT ${names} FROM usage_names)`,
    );
    const named = `JOIN usage_names n USING (${names})`;
    const add = (level: number, start: string, key: string, id: string, from: string) =>
      run(
        `INSERT INTO usage_totals (level, start, key, names, calls, ${amounts.join(', ')})
         SELECT ${level}, ${start}, ${key}, ${id}, SUM(calls), ${sums} FROM ${from} GROUP BY 2, 3, 4 ORDER BY 2, 3, 4`,
      );
    await add(5, 'h', 'k.id', 'n.id', `grouped g ${named} JOIN usage_keys k USING (key_id)`);
    await add(3, 'h', '0', 'n.id', `grouped g ${named}`);
    await add(4, `${(today * day) / minute}`, '0', 'n.id', `grouped g ${named}`);
    await add(1, 'h', '0', unnamed, 'grouped g');
    await add(6, `${(today * day) / minute}`, 'k.id', unnamed, 'grouped g JOIN usage_keys k USING (key_id)');
    await run(
      `INSERT INTO usage_subjects (id, kind, subject, key_id, team, member, organisation, last_day)
       SELECT (SELECT COALESCE(MAX(id), 0) FROM usage_subjects) + ROW_NUMBER() OVER (), ${subjectKinds.bearer},
         concat_ws(' ', key_id, team, member, organisation), key_id, team, member, organisation, ${lastDay}
       FROM (SELECT DISTINCT key_id, o.team, o.member, o.organisation FROM grouped g JOIN usage_owners o ON o.id = g.owners) AS s
       ON CONFLICT (kind, subject) DO NOTHING`,
    );
    for (const [kind, level, subject] of subjects) {
      const owners = 'LEFT JOIN usage_owners o ON o.id = g.owners';
      const number = subjectKinds[kind];
      await run(
        `INSERT INTO usage_subjects (id, kind, subject, team, member, organisation, last_day)
         SELECT (SELECT COALESCE(MAX(id), 0) FROM usage_subjects) + ROW_NUMBER() OVER (), ${number}, subject,
           ${kind === 'team' ? 'team' : 'NULL'}, ${kind === 'member' ? 'member' : 'NULL'}, organisation, ${lastDay}
         FROM (SELECT ${subject} AS subject, MAX(team) AS team, MAX(member) AS member, MAX(organisation) AS organisation
               FROM grouped g ${owners} WHERE ${subject} IS NOT NULL GROUP BY 1) AS s
         WHERE NOT EXISTS (SELECT 1 FROM usage_subjects t WHERE t.kind = ${number} AND t.subject = s.subject)`,
      );
      await run(
        `INSERT INTO usage_subject_totals (level, start, subject, names, calls, ${amounts.join(', ')})
         SELECT ${level}, h, s.id, ${unnamed}, SUM(calls), ${sums} FROM grouped g ${owners}
         JOIN usage_subjects s ON s.kind = ${number} AND s.subject = ${subject} GROUP BY 2, 3, 4 ORDER BY 2, 3, 4`,
      );
    }
    await run('DROP TABLE grouped');
  }
}

/** Levels of hours that lists are read with. */
const subjects: readonly (readonly [SubjectKind, level: number, subject: string])[] = [
  ['organisation', 3, 'o.organisation'],
  ['team', 7, `o.team || ' ' || o.organisation`],
  ['member', 10, `o.member || ' ' || o.organisation`],
  ['tag', 13, 'g.tag'],
  ['endUser', 17, 'g.end_user'],
];
