/** Writes sums of calls as a gateway would have made them, without the calls: millions of these take hours to sum. */
import { day, hour, minute } from '../../core/money/usage-log/levels.ts';
import { subjectKinds, type SubjectKind } from '../../core/money/usage-log/subjects.ts';
import { series, type Age, type Statements } from './statements.ts';
import { ownerId } from './owners.ts';

const amounts = 'input, output, cache_read, cache_write, reasoning, micro_dollars';
const dayMinutes = day / minute;
const hourMinutes = hour / minute;

/** Names of rows: their ids, and what they say. Without names: done, failed, refused. With names: the same of each model. */
const models = 12;
const unnamed = { done: 1, failed: 2, refused: 3 } as const;

/** Writes the sums of so many calls in whole days before a time. Those of hours with keys or owners are of two days. */
export async function fillSums({ run }: Statements, isSqlite: boolean, age: Age, now: number): Promise<void> {
  const { days, keys, members, teams } = age;
  const today = Math.floor(now / day);
  const calls = age.calls / days;
  await fillNames(run, isSqlite, age, today);
  // A few keys have most of the calls: as many as in `callsOf`.
  // In floating point: powers of exact numbers take a server a hundred times as long.
  const power = (k: string): string => `pow(CAST((${k}) / ${keys}.0 AS DOUBLE PRECISION), 0.3333333333)`;
  const ofKey = (k: string, count: number): string =>
    `CAST(ROUND(${count} * (${power(`${k} + 1`)} - ${power(k)}) + 0.4) AS BIGINT)`;
  const sums = (of: string): string =>
    `${of} * 1500, ${of} * 450, ${of} * 350, NULL, ${of} * 25, ${of} * 10000`;
  const kinds = [
    [unnamed.done, 'true', 0.94],
    [unnamed.failed, '(k + n) % 6 = 0', 0.05],
    [unnamed.refused, '(k + n) % 7 = 0', 0.05],
  ] as const;
  for (let before = days; before > 0; before -= 1)
    for (const [id, when, part] of kinds)
      await run(
        `INSERT INTO usage_totals (level, start, key, names, calls, ${amounts})
         SELECT 6, ${(today - before) * dayMinutes}, k + 1, ${id}, c, ${sums('c')}
         FROM (SELECT n AS k, ${before} AS n, ${ofKey('n', calls * part)} AS c FROM ${series(isSqlite, 0, keys - 1)} AS numbers) AS given
         WHERE c > 0 AND ${when}`,
      );
  // The first day of 30, and of 7, which the overviews begin in the middle of.
  for (const before of [30, 7].filter((one) => one <= days))
    for (let one = 0; one < 24; one += 1)
      await run(
        `INSERT INTO usage_totals (level, start, key, names, calls, ${amounts})
         SELECT 5, ${(today - before) * dayMinutes + one * hourMinutes}, k + 1, 4 + 3 * (k % ${models}), c, ${sums('c')}
         FROM (SELECT n AS k, ${ofKey('n', calls / 24)} + (n * 7 + ${one}) % 2 AS c FROM ${series(isSqlite, 0, keys - 1)} AS numbers) AS given
         WHERE c > 0`,
      );
  await fillGateway(run, isSqlite, age, today);
  const sum = `SUM(calls), ${amounts.replaceAll(/\w+/g, 'SUM($&)')}`;
  const member = `((key - 1) % ${members})`;
  const subjects = {
    bearer: 'key',
    member: `${keys + 1} + ${member}`,
    team: `${keys + members + 1} + ${member} % ${teams}`,
    organisation: `${keys + members + teams + 1} + ${member} % ${teams} % 4`,
  };
  const levels = [
    ['bearer', 6, 2, false],
    ['member', 6, 11, false],
    ['team', 6, 8, false],
    ['organisation', 6, 4, false],
    ['bearer', 5, 1, false],
    ['member', 5, 10, false],
    ['team', 5, 7, false],
    ['organisation', 5, 3, false],
    ['member', 5, 12, true],
    ['team', 5, 9, true],
    ['organisation', 5, 5, true],
  ] as const;
  for (const [kind, from, level, hasNames] of levels) {
    const names = from === 6 || hasNames ? 'names' : '1';
    await run(
      `INSERT INTO usage_subject_totals (level, start, subject, names, calls, ${amounts})
       SELECT ${level}, start, ${subjects[kind]}, ${names}, ${sum} FROM usage_totals WHERE level = ${from} GROUP BY 2, 3, 4`,
    );
  }
}

type Run = Statements['run'];

async function fillNames(
  run: Run,
  isSqlite: boolean,
  { keys, members, teams }: Age,
  today: number,
): Promise<void> {
  const named = (id: number, ...[model, channel, format, operation]: readonly string[]) => {
    const names = [model, channel, format, operation].map((name) => `'${name ?? ''}'`).join(', ');
    return [
      `(${id}, ${names}, ${model === '' ? 0 : 200}, 0, ${today})`,
      `(${id + 1}, ${names}, ${model === '' ? 0 : 502}, 1, ${today})`,
      `(${id + 2}, ${names.replace(`'${channel ?? ''}'`, "''")}, ${model === '' ? 400 : 429}, 1, ${today})`,
    ];
  };
  const rows = [
    ...named(unnamed.done, '', '', '', ''),
    ...Array.from({ length: models }, (_, model) =>
      named(4 + 3 * model, `model-${model}`, `channel-${model % 5}`, 'messages', 'chat'),
    ).flat(),
  ];
  await run(
    `INSERT INTO usage_names (id, model, channel, format, operation, status, failed, last_day) VALUES ${rows.join(', ')}`,
  );
  const numbers = (count: number): string => `${series(isSqlite, 0, count - 1)} AS numbers`;
  const id = (prefix: 'org' | 'team' | 'mem', number: string): string => ownerId(isSqlite, prefix, number);
  const key = ownerId(isSqlite, 'key', 'n');
  await run(
    `INSERT INTO usage_keys (id, key_id, last_day) SELECT n + 1, ${key}, ${today} FROM ${numbers(keys)}`,
  );
  const member = `n % ${members}`;
  const team = `${member} % ${teams}`;
  const add = (kind: SubjectKind, first: number, count: number, subject: string, own: readonly string[]) =>
    run(
      `INSERT INTO usage_subjects (id, kind, subject, key_id, team, member, organisation, last_day)
       SELECT ${first} + n, ${subjectKinds[kind]}, ${subject}, ${own.join(', ')}, ${today} FROM ${numbers(count)}`,
    );
  const organisation = id('org', `${team} % 4`);
  await add(
    'bearer',
    1,
    keys,
    `${key} || ' ' || ${id('team', team)} || ' ' || ${id('mem', member)} || ' ' || ${organisation}`,
    [key, id('team', team), id('mem', member), organisation],
  );
  await add('member', keys + 1, members, `${id('mem', 'n')} || ' ' || ${organisation}`, [
    'NULL',
    'NULL',
    id('mem', 'n'),
    organisation,
  ]);
  await add('team', keys + members + 1, teams, `${id('team', 'n')} || ' ' || ${organisation}`, [
    'NULL',
    id('team', 'n'),
    'NULL',
    organisation,
  ]);
  await add('organisation', keys + members + teams + 1, 4, id('org', 'n'), ['NULL', 'NULL', 'NULL', 'NULL']);
}

/** Sums without keys: of hours and days, of all calls and by names. */
async function fillGateway(run: Run, isSqlite: boolean, { calls, days }: Age, today: number): Promise<void> {
  const add = (level: number, size: number, names: string) =>
    run(
      `INSERT INTO usage_totals (level, start, key, names, calls, ${amounts}, bins)
       SELECT ${level}, ${(today - days) * dayMinutes} + n * ${size}, 0, id, c, c * 1500, c * 450, c * 350, NULL, c * 25, c * 10000,
         '{"100":' || c || ',"f80":' || c || '}'
       FROM (SELECT n, id, CAST(${calls / days / dayMinutes} * ${size} * CASE failed WHEN 0 THEN 0.9 ELSE 0.05 END / CASE model WHEN '' THEN 1 ELSE ${models} END AS BIGINT) + 1 AS c
             FROM ${series(isSqlite, 0, (days * dayMinutes) / size - 1)} AS numbers, usage_names WHERE ${names}) AS given`,
    );
  await add(1, hourMinutes, "model = ''");
  await add(3, hourMinutes, "model <> ''");
  await add(4, dayMinutes, "model <> ''");
}
