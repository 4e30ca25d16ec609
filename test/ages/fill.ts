import { fillOwners, ownerId } from './owners.ts';
import { padded, series, type Age, type Statements } from './statements.ts';
import { fillSums } from './sums.ts';

/** Ids of a key and of a call that exist in a database of this age. */
export const keyId = (index: number): string => `key_${String(index).padStart(16, '0')}`;
export const callId = (index: number): string => `req_${String(index).padStart(24, '0')}`;

/** Number of calls that one statement writes. */
const batch = 250_000;
/** Number of records where there are sums of all calls. */
const newest = 20_000;
const day = 86_400_000;

/**
 * Fills a database that a gateway has made with keys and calls, as that gateway would have written them. A few keys have most of the
 * calls. `now`: when the newest call came in, in milliseconds since 1970.
 */
export async function fill(statements: Statements, isSqlite: boolean, age: Age, now: number): Promise<void> {
  const { calls } = age;
  await fillKeys(statements, isSqlite, age);
  if (age.members > 0) await fillOwners(statements, isSqlite, age, now);
  const hasKinds = await statements.run('SELECT kind FROM usage_records LIMIT 1').then(
    () => true,
    () => false,
  );
  if (age.isSummed) await fillSums(statements, isSqlite, age, now);
  for (let from = age.isSummed ? Math.max(0, calls - newest) : 0; from < calls; from += batch) {
    const to = from + batch;
    const source = callsIn(isSqlite, from, Math.min(calls, to) - 1, age, now);
    if (isSqlite) await statements.run('BEGIN');
    if (hasKinds) await fillWithKinds(statements, source);
    else {
      await statements.run(`INSERT INTO usage_records (${columns.join(', ')}) ${source}`);
      await statements.run(
        `INSERT INTO usage_details (at, id, details) SELECT at, id, ${detailsOf('model', 'status')} FROM (${source}) AS calls`,
      );
    }
    await statements.run(attemptsOf(`(${source})`));
    if (isSqlite) await statements.run('COMMIT');
  }
  await statements.run(isSqlite ? 'ANALYZE' : 'VACUUM ANALYZE');
}

/** The SELECT of calls with these numbers, the first and the last included. */
export function callsIn(isSqlite: boolean, from: number, last: number, age: Age, now: number): string {
  const { calls, days } = age;
  const first = Math.round(now - days * day);
  return callsOf(
    isSqlite,
    series(isSqlite, from, last),
    age,
    `${first} + CAST(n * ${(days * day) / calls} AS BIGINT)`,
  );
}

/** The statement that writes the failed attempts of calls. */
export function attemptsOf(source: string): string {
  return `INSERT INTO usage_attempts (at, id, number, channel, model, code, message)
    SELECT at, id, 0, channel, upstream_model, 'upstream_error', 'The engine is overloaded.' FROM ${source} AS calls WHERE status = 502`;
}

/** What records have in common, in versions that write it once. */
export const kindColumns = [
  'operation',
  'format',
  'upstream_format',
  'model',
  'upstream_model',
  'channel',
  'code',
  'ended',
] as const;

/** What tells kinds apart, as one text. */
export const wordsOfKind = kindColumns.map((name) => `COALESCE(${name}, '')`).join(` || ' ' || `);

async function fillWithKinds(statements: Statements, source: string): Promise<void> {
  await statements.run(
    `CREATE TEMPORARY TABLE filled AS SELECT *, ${wordsOfKind} AS words FROM (${source}) AS calls`,
  );
  await statements.run(
    'CREATE TEMPORARY TABLE IF NOT EXISTS filled_kinds (id INTEGER PRIMARY KEY, words TEXT UNIQUE)',
  );
  await statements.run(
    `INSERT INTO filled_kinds (id, words) SELECT (SELECT COUNT(*) FROM filled_kinds) + ROW_NUMBER() OVER (), words
     FROM (SELECT DISTINCT words FROM filled) AS given WHERE words NOT IN (SELECT words FROM filled_kinds)`,
  );
  await statements.run(
    `INSERT INTO usage_kinds (id, ${kindColumns.join(', ')}, price, last_day)
     SELECT k.id, ${kindColumns.map((name) => `MAX(${name})`).join(', ')}, ${priceOf('MAX(model)')}, MAX(at) / 86400000
     FROM filled f JOIN filled_kinds k ON k.words = f.words WHERE k.id NOT IN (SELECT id FROM usage_kinds) GROUP BY k.id`,
  );
  const hasOwners = await statements.run('SELECT owners FROM usage_records LIMIT 1').then(
    () => true,
    () => false,
  );
  await statements.run(
    `INSERT INTO usage_records (${insertedColumns(hasOwners)}) SELECT ${insertedValues(hasOwners)}
     FROM filled f JOIN filled_kinds k ON k.words = f.words ORDER BY at`,
  );
  await statements.run('DROP TABLE filled');
}

const ownedColumns = ['owners', 'tags', 'end_user'];
const ownColumns = (hasOwners: boolean): readonly string[] => [
  ...columns.filter((name) => !(kindColumns as readonly string[]).includes(name)),
  ...(hasOwners ? ownedColumns : []),
];

/** Columns of records that have a kind. */
export const insertedColumns = (hasOwners: boolean): string =>
  `${ownColumns(hasOwners).join(', ')}, operation, format, model, ended, kind, details`;

/** Their values: of a call `f` and its kind `k`. */
export const insertedValues = (hasOwners: boolean): string =>
  `${ownColumns(hasOwners)
    .map((name) => `f.${name}`)
    .join(', ')}, '', '', '', '', k.id, CASE WHEN status = 200 THEN NULL ELSE '{' || ${reason} || '}' END`;

const columns = [
  'at',
  'id',
  'key_id',
  'ip',
  'operation',
  'format',
  'upstream_format',
  'model',
  'upstream_model',
  'channel',
  'stream',
  'pass_through',
  'status',
  'code',
  'ended',
  'input',
  'output',
  'cache_read',
  'cache_write',
  'reasoning',
  'micro_dollars',
  'ms',
  'first_ms',
  'gateway_ms',
  'ms_bin',
  'first_bin',
] as const;

/** Numbers from 0 to 1 that look like chance, and are the same in every run. In floating point: exact numbers take a server ten times as long. */
const share = (multiplier: number): string =>
  `(CAST((n + 1) * ${multiplier} % 1000003 AS DOUBLE PRECISION) / 1000003)`;

/** A condition for one of 200,000 calls; others with another number. */
const rare = (which: number): string => `n % 200000 = ${which}`;
const byChance = (which: number, value: string, other: string): string =>
  `CASE WHEN ${rare(which)} THEN ${value} ELSE ${other} END`;

/** Calls with these numbers. A key has one format, a model for most of its calls, and that model has a channel for most of its calls. */
function callsOf(isSqlite: boolean, numbers: string, { keys, members }: Age, at: string): string {
  const [chance, time] = [share(7_919), share(104_729)];
  const status = `CASE WHEN ${rare(1)} THEN 451 WHEN ${chance} < 0.94 THEN 200 WHEN ${chance} < 0.97 THEN 429 WHEN ${chance} < 0.985 THEN 502 WHEN ${chance} < 0.995 THEN 400 ELSE 499 END`;
  // From 30 ms to a minute and a half; most take a few seconds.
  const ms = `(30.0 + 9000.0 * ${time} * ${time} / (1.1 - ${time}))`;
  const bin = (value: string): string => `CAST(round(ln(1.0 + ${value}) * 25) AS SMALLINT)`;
  const whole = (value: string): string =>
    isSqlite ? `CAST(${value} AS INTEGER)` : `floor(${value})::bigint`;
  const key = whole(`${keys} * ${share(15_485_863)} * ${share(15_485_863)} * ${share(15_485_863)}`);
  const model = '((k + CASE WHEN n % 10 < 8 THEN 0 WHEN n % 10 = 8 THEN 1 ELSE 5 END) % 12)';
  const owned = members > 0;
  return `SELECT ${at} AS at, 'req_' || ${padded(isSqlite, 'n', 24)} AS id, 'key_' || ${padded(isSqlite, 'k', 16)} AS key_id,
    '203.0.113.' || (n % 200) AS ip, CASE WHEN n % 50 = 0 THEN 'embed' ELSE 'chat' END AS operation,
    CASE k % 3 WHEN 0 THEN 'chat-completions' WHEN 1 THEN 'messages' ELSE 'responses' END AS format,
    CASE k % 2 WHEN 0 THEN 'chat-completions' ELSE 'messages' END AS upstream_format,
    ${byChance(2, "'model-rare'", `'model-' || ${model}`)} AS model, 'vendor-model-' || ${model} || '-20260101' AS upstream_model,
    CASE WHEN ${chance} < 0.94 OR ${chance} >= 0.955 THEN 'channel-' || ((${model} + CASE WHEN n % 7 = 0 THEN 1 ELSE 0 END) % 5) END AS channel, n % 2 AS stream, n % 2 AS pass_through, ${status} AS status,
    CASE WHEN ${chance} < 0.94 AND NOT ${rare(1)} THEN NULL ELSE 'some_error' END AS code, CASE WHEN ${chance} < 0.94 AND NOT ${rare(1)} THEN 'complete' ELSE 'error' END AS ended,
    800 + n % 3000 AS input, n % 900 AS output, n % 700 AS cache_read, 0 AS cache_write, n % 50 AS reasoning, 300 + n % 20000 AS micro_dollars,
    ${ms} AS ms, ${ms} / 3.0 AS first_ms, 1.5 AS gateway_ms, ${bin(ms)} AS ms_bin, ${bin(`${ms} / 3.0`)} AS first_bin,
    ${owned ? `1 + k % ${members}` : 'NULL'} AS owners, ${owned ? byChance(3, `'["project-rare"]'`, `CASE WHEN n % 4 = 0 THEN '["project-' || (k % 200) || '"]' END`) : 'NULL'} AS tags,
    ${owned ? byChance(4, `'user-rare'`, `CASE WHEN n % 10 = 0 THEN 'user-' || (n % 2000) END`) : 'NULL'} AS end_user
    FROM (SELECT n, ${key} AS k FROM ${numbers} AS numbers) AS numbers`;
}

const reason = `'"reason":"The provider could not answer this call: the engine is overloaded."'`;

function priceOf(model: string): string {
  return `'{"model":"' || ${model} || '","input":3,"cacheRead":0.3,"cacheWrite":3.75,"output":15}'`;
}

function detailsOf(model: string, status: string): string {
  return `'{' || CASE WHEN ${status} = 200 THEN '' ELSE ${reason} || ',' END || '"price":' || ${priceOf(model)} || '}'`;
}

/**
 * Runs work that adds very many keys to a PostgreSQL: without triggers, and with indexes of `api_keys` that are made afterwards. One by one, a million
 * of keys took more than 20 minutes.
 */
async function withoutTriggers({ run }: Statements, work: () => Promise<void>): Promise<void> {
  const [found] = await run("SELECT to_regproc('api_key_own') IS NOT NULL AS has");
  if (found?.['has'] !== true) {
    // A database of a version without these tables.
    await work();
    return;
  }
  const indexes = await run(
    "SELECT indexname AS name, indexdef AS text FROM pg_indexes WHERE tablename = 'api_keys' AND indexname <> 'api_keys_pkey'",
  );
  for (const { name } of indexes) await run(`DROP INDEX ${String(name)}`);
  await run('ALTER TABLE keyv DISABLE TRIGGER USER');
  await work();
  await run(
    `SELECT COUNT(*) FROM (SELECT api_key_write(key, value), api_key_own(key, value) FROM keyv WHERE namespace = 'api-keys' OFFSET 0) AS written`,
  );
  await run('ALTER TABLE keyv ENABLE TRIGGER USER');
  await run("SET maintenance_work_mem = '1GB'");
  for (const { text } of indexes) await run(String(text));
}

/** Copies the key that is there as often as needed, a minute apart, with other ids, names, secrets and owners. */
export async function fillKeys(statements: Statements, isSqlite: boolean, age: Age): Promise<void> {
  const { keys, members, teams } = age;
  const [row] = await statements.run("SELECT key, value FROM keyv WHERE namespace = 'api-keys' LIMIT 1");
  const hash = String(row?.['key']);
  const value = String(row?.['value']);
  const [, id = ''] = /"id":"([^"]+)"/.exec(value) ?? [];
  const [, name = ''] = /"name":"([^"]+)"/.exec(value) ?? [];
  const [, created = ''] = /"createdAt":(\d+)/.exec(value) ?? [];
  const text = (words: string): string => `'${words.replaceAll("'", "''")}'`;
  const newHash = padded(isSqlite, 'n', 64);
  const owners =
    members === 0
      ? ''
      : ` || '"member":"' || ${ownerId(isSqlite, 'mem', `n % ${members}`)} || '","team":"' || ${ownerId(isSqlite, 'team', `n % ${members} % ${teams}`)} || '",'`;
  const add = async (): Promise<void> => {
    await statements.run(
      `INSERT INTO keyv (namespace, key, value) SELECT 'api-keys', ${newHash},
       replace(replace(replace(replace(${text(value)}, ${text(hash)}, ${newHash}), ${text(`"id":"${id}"`)}, '"id":"key_' || ${padded(isSqlite, 'n', 16)} || '"'),
         ${text(`"name":"${name}"`)}, '"name":"team ' || n || '"'), ${text(`"createdAt":${created}`)},
         ''${owners} || '"createdAt":' || (${created} - 60000 * (${keys} - n)))
     FROM ${series(isSqlite, 0, keys - 1)} AS numbers`,
    );
  };
  await (isSqlite ? add() : withoutTriggers(statements, add));
}
