import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { UsageGrouping } from '../../../../core/money/usage-log/index.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { PostgresError } from '../../../../core/state/database/postgres-error.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';
import { eventually } from '../../../support/eventually.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { temporaryDatabase } from '../../state/support.ts';

const hour = 3_600_000;

function threadSuite(url: () => string | Promise<string>): void {
  test('sums that are read in a thread are those of this process, with the names of keys and owners', async () => {
    const stores = openStores(await url());
    onTestFinished(() => stores.close());
    await stores.ready();
    await stores.namespace('owners').set('team_1', { name: ':Red' });
    await stores.namespace('api-keys-deleted').set('key_2', ':Gone');
    const at = Date.now();
    await insertRecords(
      stores,
      Array.from({ length: 30 }, (_, index) =>
        usageRecord(`call_${index}`, {
          at: at - index * hour,
          keyId: `key_${index % 3}`,
          team: 'team_1',
          ms: index * 100,
          microDollars: index,
        }),
      ),
    );
    const log = openUsageLog(stores);
    const inThread = openUsageLog(stores, { inThread: true });
    while (await log.addToSums());
    const groupings: readonly UsageGrouping[] = ['keyId', 'team', 'model', { bucket: hour }];
    const filter = { since: at - 20 * hour };
    const text = new TextDecoder();
    for (const by of groupings) {
      const options = { limit: 2, percentiles: true, names: true };
      const expected = await log.sums(filter, by, options);
      expect(await inThread.sums(filter, by, options)).toEqual(expected);
      const { json, ...others } = await inThread.sumsInJson(filter, by, options);
      expect({ ...others, sums: JSON.parse(text.decode(json)) as unknown }).toEqual(expected);
    }
    const before = { since: at - 40 * hour, until: filter.since };
    const compared = await inThread.sumsInJson(filter, 'keyId', { limit: 1, before });
    const [first] = JSON.parse(text.decode(compared.json)) as { group: string }[];
    const all = await log.sums(before, 'keyId', { names: true });
    expect(JSON.parse(text.decode(compared.before))).toEqual(
      all.sums.filter(({ group }) => group === first?.group),
    );
    const { sums: teams } = await inThread.sums(filter, 'team', { names: true });
    expect(teams).toMatchObject([{ group: 'team_1', name: ':Red' }]);
    const { sums: keys } = await inThread.sums(filter, 'keyId', { names: true });
    expect(keys.find(({ group }) => group === 'key_2')).toMatchObject({ name: ':Gone' });
    const spent = await inThread.spentByKeys(['key_1'], filter.since);
    expect(spent).toEqual(await log.spentByKeys(['key_1'], filter.since));
    expect(spent.size).toBe(1);
  });

  test('questions are refused when the database is closed, and one that is not answered yet is rejected', async () => {
    const stores = openStores(await url());
    await stores.ready();
    const log = openUsageLog(stores, { inThread: true });
    const pending = log.sums({}, 'model').catch((error: unknown) => String(error));
    await stores.close();
    expect(await pending).toContain('closed');
    await expect(log.sums({}, 'model')).rejects.toThrow('closed');
  });
}

describe('on an SQLite file', () => {
  threadSuite(temporaryDatabase);
});

const missing = withoutPostgres();

describe.skipIf(missing !== undefined)(`on PostgreSQL${missing === undefined ? '' : ` (${missing})`}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  threadSuite(() => server.createDatabase());

  test('connections of the thread are counted beside those of the process', async () => {
    const stores = openStores(await server.createDatabase());
    onTestFinished(() => stores.close());
    await stores.ready();
    const log = openUsageLog(stores, { inThread: true });
    const ofThread = () =>
      stores.database.kind === 'postgres'
        ? stores.database.connections().filter((one) => one.server === 'thread')
        : [];
    expect(ofThread()).toEqual([]);
    await log.sums({}, 'model');
    await eventually(() => ofThread().length > 0);
    const [found] = ofThread();
    expect(found).toMatchObject({ inUse: 0, waiting: 0 });
    expect(found?.idle).toBeGreaterThan(0);
  });

  test('a failure of the server comes out of the thread as that of the database', async () => {
    const url = await server.createDatabase();
    const stores = openStores(url);
    onTestFinished(() => stores.close());
    await stores.ready();
    const log = openUsageLog(stores, { inThread: true });
    await server.run(url, 'ALTER TABLE usage_totals RENAME TO hidden');
    const error = await log.sums({}, 'model').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PostgresError);
    expect(error).toMatchObject({ code: '42P01' });
  });
});

test('a thread that reads sums loads neither schemas nor the log, which would be half of its start', () => {
  const program = fileURLToPath(
    new URL('../../../../core/money/usage-log/sums-thread-program.ts', import.meta.url),
  );
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    await import(${JSON.stringify(program)}).catch(() => {});
    await import(${JSON.stringify(program.replace(/money.*/, 'state/database/postgres.ts'))});
    console.log(JSON.stringify(loaded));
  `;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  const loaded = JSON.parse(output) as readonly string[];
  expect(loaded.filter((url) => url.endsWith('/usage-log/sums-reader.ts'))).toHaveLength(1);
  expect(loaded.filter((url) => url.includes('/node_modules/'))).toEqual([]);
});
