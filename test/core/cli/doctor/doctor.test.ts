/* oxlint-disable vitest/expect-expect -- `expectOne` and `wrong` say what is expected. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../../channels/demo/index.ts';
import openaiChannel from '../../../../channels/openai.ts';
import { readConfig } from '../../../../core/config/config.ts';
import { fileFindings, memoryFindings } from '../../../../core/cli/doctor/checks/limits.ts';
import { nodeFinding } from '../../../../core/cli/doctor/checks/runtime.ts';
import { examineAll } from '../../../../core/cli/doctor/examine.ts';
import type { Examined, Finding } from '../../../../core/cli/doctor/finding.ts';
import usageLog from '../../../../plugins/usage-log/index.ts';
import { startGateway } from '../../../support/gateway.ts';
import { databaseUrl } from '../../../../core/config/database-of.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { freePort } from '../../../support/free-port.ts';
import { operatorFolder } from '../../../support/operator-folder.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { startRedis, withoutRedis, type TestRedis } from '../../../support/redis.ts';
import {
  sentinelPassword,
  serverPassword,
  startRedisCluster,
  startRedisServer,
  startSentinels,
} from '../../../support/redis-topologies.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { startUpstream } from '../../../support/upstream.ts';
import { sluice } from '../_process.ts';

interface Given extends Partial<Omit<Examined, 'config' | 'databaseUrl'>> {
  readonly config?: object;
  readonly folder?: string;
}

const gibibyte = 1024 ** 3;

function examinedOf({ config = {}, folder = temporaryFolder(), ...more }: Given): Examined {
  const loaded = readConfig({ database: 'sqlite::memory:', ...config }, join(folder, 'gateway.config.ts'));
  return {
    config: loaded,
    databaseUrl: databaseUrl(loaded),
    now: Date.now,
    minFree: 1024,
    certificateDays: 21,
    asksProviders: false,
    ...more,
  };
}

/** Returns the findings of one check. */
async function found(check: string, given: Given = {}): Promise<readonly Finding[]> {
  return (await examineAll(examinedOf(given))).filter((finding) => finding.check === check);
}

const wrong = (findings: readonly Finding[]) => findings.filter(({ status }) => status !== 'ok');

/** Expects one finding that is not ok, with something to do. */
function expectOne(
  findings: readonly Finding[],
  status: Finding['status'],
  message: RegExp,
  fix: RegExp,
): void {
  expect(wrong(findings)).toEqual([
    expect.objectContaining({
      status,
      message: expect.stringMatching(message) as string,
      fix: expect.stringMatching(fix) as string,
    }),
  ]);
}

describe('sluice doctor', () => {
  const config = (more = ''): string =>
    `import demo from 'sluice/channels/demo';\nexport default { channels: [demo()]${more} };\n`;

  test('prints a page, and ends with code 0 where nothing is wrong', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config() });
    const { code, stdout, stderr } = await sluice(['doctor'], {}, folder);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok +config +.*gateway\.config\.ts is valid\.$/m);
    expect(stdout).toMatch(/\n0 errors, \d+ warnings?, \d+ ok\.\n$/);
  });

  test('puts errors first, says what to do, and ends with code 1; as JSON too', async () => {
    const folder = operatorFolder({
      'gateway.config.ts': config(", adminPassword: 'password1234'"),
    });
    const { code, stdout } = await sluice(['doctor'], {}, folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^error +secrets/);
    expect(stdout).toMatch(/The admin password is easy to guess\.\n +Set another one/);
    expect(stdout).toMatch(/\n1 error, /);
    const json = await sluice(['doctor', '--json'], {}, folder);
    expect(JSON.parse(json.stdout)).toContainEqual(
      expect.objectContaining({ check: 'secrets', status: 'error' }),
    );
    expect(json.stdout).not.toContain('password1234');
  });

  test('names every problem of a config', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config(', colour: 1') });
    const { code, stdout } = await sluice(['doctor'], {}, folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^error +config +.*unknown option "colour"[^\n]*\n +Correct the config/);
  });

  test('says so when there is no config', async () => {
    const { code, stdout } = await sluice(['doctor'], {}, temporaryFolder());
    expect([code, stdout]).toEqual([1, expect.stringContaining('does not exist')]);
  });

  test('explains every check on its page', () => {
    const page = readFileSync(new URL('../../../../docs/guides/doctor.md', import.meta.url), 'utf8');
    const names = [
      'config',
      'runtime',
      'listen',
      'secrets',
      'database',
      'clock',
      'redis',
      'disk',
      'limits',
      'providers',
    ];
    expect(names.filter((name) => !page.includes(`\n### ${name}\n`))).toEqual([]);
  });
});

describe.skipIf(withoutPostgres() !== undefined)(`PostgreSQL ${withoutPostgres() ?? ''}`, () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.close());

  async function made(): Promise<string> {
    const url = await postgres.createDatabase();
    const stores = openStores(url, () => {});
    await stores.ready();
    await stores.close();
    return url;
  }

  test('that is sound has nothing to do, and one that was never used waits for the first start', async () => {
    const url = await made();
    const findings = await found('database', { config: { database: url } });
    expect(wrong(findings)).toEqual([]);
    expect(findings[0]?.message).toMatch(/^PostgreSQL \d+.* is reachable\. It uses/);
    const fresh = await postgres.createDatabase();
    expectOne(
      await found('database', { config: { database: fresh } }),
      'warning',
      /database migrations are pending/,
      /start/,
    );
  });

  test('with a wrong password, or away, is an error without the password', async () => {
    const url = await postgres.createDatabase();
    const other = url.replace(/:[^:@/]*@/, ':not-the-secret-0123@');
    const refused = await found('database', { config: { database: other } });
    expectOne(refused, 'error', /password authentication failed/, /SLUICE_DATABASE/);
    expect(JSON.stringify(refused)).not.toContain('not-the-secret');
    const away = `postgres://tester:x@127.0.0.1:${await freePort()}/test`;
    expectOne(
      await found('database', { config: { database: away } }),
      'error',
      /ECONNREFUSED/,
      /Start the database/,
    );
  });

  test('whose user may not make tables, or with too few connections, is found', async () => {
    const url = await made();
    await postgres.run(
      url,
      "CREATE ROLE plain LOGIN PASSWORD 'plain-password'; REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    );
    await postgres.run(url, 'GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain');
    const plain = url.replace(/\/\/[^@]*@/, '//plain:plain-password@');
    expectOne(
      await found('database', { config: { database: plain } }),
      'error',
      /not allowed to create tables/,
      /GRANT CREATE/,
    );
    const many = await found('database', { config: { database: url, workers: 64 } });
    expectOne(
      many,
      'warning',
      /of 200 connections are in use; this gateway needs up to 512/,
      /max_connections/,
    );
    expectOne(
      await found('database', { config: { database: url, workers: 64, spareWorker: true } }),
      'warning',
      /needs up to 520/,
      /max_connections/,
    );
  });

  test('of a newer version is an error', async () => {
    const url = await made();
    await postgres.run(url, "INSERT INTO sluice_migrations VALUES ('later-9', 1)");
    expectOne(
      await found('database', { config: { database: url } }),
      'error',
      /newer version of Sluice/,
      /./,
    );
  });

  test.each([
    [5_000, 'warning', /50\d\d ms ahead of that of PostgreSQL|49\d\d ms ahead/],
    [-60_000, 'error', /ms behind that of PostgreSQL/],
  ] as const)('with a clock that differs by %d ms is found', async (skew, status, message) => {
    const url = await made();
    const findings = await found('clock', { config: { database: url }, now: () => Date.now() + skew });
    expectOne(findings, status, message, /chrony/);
  });

  test('that is slow after it told its time has no wrong clock', async () => {
    const url = await made();
    await postgres.run(
      url,
      'ALTER TABLE usage_records RENAME TO old_records; CREATE VIEW usage_records AS SELECT 1::bigint AS at FROM pg_sleep(3)',
    );
    const findings = await found('clock', { config: { database: url } });
    expect([findings.length, wrong(findings)]).toEqual([1, []]);
  });
});

describe.skipIf(withoutRedis() !== undefined)(`Redis ${withoutRedis() ?? ''}`, () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());
  const shared = () => ({ config: { shared: { url: redis.url } } });

  test('that keeps everything is sound', async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
    const findings = await found('redis', shared());
    expect(wrong(findings)).toEqual([]);
    expect(findings[0]?.message).toMatch(/^Redis \d+\./);
  });

  test('that forgets keys when it is full is a warning, and so is one that is full', async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    expectOne(await found('redis', shared()), 'warning', /maxmemory-policy is allkeys-lru/, /noeviction/);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction');
    expectOne(await found('redis', shared()), 'warning', /of 1\.0 MiB\. When it is full/, /maxmemory/);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  });

  test('with another clock is found', async () => {
    const findings = await found('clock', { ...shared(), now: () => Date.now() - 30_000 });
    expectOne(findings, 'error', /behind that of Redis/, /chrony/);
  });

  test('that is away is an error without its password', async () => {
    const url = `redis://:a-secret-password@127.0.0.1:${await freePort()}`;
    const findings = await found('redis', { config: { shared: { url } } });
    expectOne(findings, 'error', /ECONNREFUSED.*Each process counts limits on its own/, /SLUICE_SHARED/);
    expect(JSON.stringify(findings)).not.toContain('a-secret-password');
  });
});

describe.skipIf(withoutRedis() !== undefined)(
  `Redis as docs/guides/databases.md has it ${withoutRedis() ?? ''}`,
  () => {
    const sound = async (shared: object): Promise<readonly string[]> => {
      const findings = [
        ...(await found('redis', { config: { shared } })),
        ...(await found('clock', { config: { shared } })),
      ];
      expect(wrong(findings)).toEqual([]);
      return findings.map(({ message }) => message);
    };

    test('is connected to with the credentials that stand outside the URL', async () => {
      const server = await startRedisServer('--requirepass', serverPassword);
      onTestFinished(() => server.close());
      await until(() => server.cli(server.port, 'PING').includes('PONG'));
      expect(await sound({ url: server.url, password: serverPassword })).toEqual([
        expect.stringMatching(/^Redis \d+\./),
        expect.stringContaining('The clock agrees'),
      ]);
      expectOne(
        await found('redis', { config: { shared: { url: server.url, password: 'not-the-password' } } }),
        'error',
        /refuses the user or the password.*Each process counts limits on its own/,
        /SLUICE_SHARED/,
      );
    });

    test('is named once where it refuses the password', async () => {
      const server = await startRedisServer('--requirepass', serverPassword);
      onTestFinished(() => server.close());
      await until(() => server.cli(server.port, 'PING').includes('PONG'));
      const folder = operatorFolder({
        'gateway.config.ts': `import demo from 'sluice/channels/demo';
        export default { channels: [demo()], shared: { url: '${server.url}', password: 'not-the-password' } };`,
      });
      const { stdout } = await sluice(['doctor', '--json'], {}, folder);
      const errors = (JSON.parse(stdout) as Finding[]).filter(({ status }) => status === 'error');
      expect(errors.map(({ check }) => check)).toEqual(['redis']);
    });

    test('is sound for the user of the page, who may not run INFO; one who may not write is an error', async () => {
      const server = await startRedisServer('--requirepass', serverPassword);
      onTestFinished(() => server.close());
      await until(() => server.cli(server.port, 'PING').includes('PONG'));
      const page = readFileSync(new URL('../../../../docs/guides/databases.md', import.meta.url), 'utf8');
      const [, rules = ''] = /^redis-cli (ACL SETUSER sluice .*)$/m.exec(page) ?? [];
      const words = rules.replaceAll("'", '').replace('PASSWORD', 'user-password').split(' ');
      expect(server.cli(server.port, ...words)).toContain('OK');
      const shared = { url: server.url, username: 'sluice', password: 'user-password' };
      expect(await sound(shared)).toEqual([
        'Redis is reachable. Its version and memory were not checked, because its user may not run INFO.',
        expect.stringContaining('The clock agrees'),
      ]);
      server.cli(server.port, 'ACL', 'SETUSER', 'sluice', '-set');
      expectOne(
        await found('redis', { config: { shared } }),
        'error',
        /does not give the user the permissions/,
        /SLUICE_SHARED/,
      );
    });

    test('may be a cluster', async () => {
      const cluster = await startRedisCluster();
      onTestFinished(() => cluster.close());
      expect(await sound({ url: cluster.url })).toContainEqual(expect.stringMatching(/^Redis \d+\./));
    });

    test('may be behind Sentinels, whose map of addresses is used', async () => {
      const sentinels = await startSentinels();
      onTestFinished(() => sentinels.close());
      const shared = { url: sentinels.url, sentinelPassword };
      expect(await sound(shared)).toContainEqual(expect.stringMatching(/^Redis \d+\./));
      const nodeAddressMap = { [`127.0.0.1:${sentinels.master()}`]: `127.0.0.1:${await freePort()}` };
      expectOne(
        await found('redis', { config: { shared: { ...shared, nodeAddressMap } } }),
        'error',
        /The Redis at 127\.0\.0\.1:\d+, .* cannot be used: connect ECONNREFUSED/,
        /SLUICE_SHARED/,
      );
    });

    async function until(check: () => boolean): Promise<void> {
      await expect.poll(check).toBe(true);
    }
  },
);

describe('usage records', () => {
  const day = 86_400_000;

  test('that grow beyond the retention, or are older than it, are found', async () => {
    const folder = temporaryFolder();
    const url = `sqlite:${join(folder, 'sluice.db')}`;
    const config = (retention: object) => ({
      database: url,
      channels: [demo()],
      plugins: [usageLog({ retention })],
    });
    const gateway = await startGateway(config({}));
    for (let count = 0; count < 48; count += 1) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await fetch(`${gateway.url}/v1/embeddings`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo', input: 'Hello' }),
      });
      expect(answer.status).toBe(200);
    }
    await gateway.close();
    const connection = new DatabaseSync(join(folder, 'sluice.db'));
    connection.exec(
      `UPDATE usage_records SET at = at - ${2 * day} WHERE id = (SELECT MIN(id) FROM usage_records)`,
    );
    connection.close();
    const judged = (retention: object) => found('database', { config: config(retention) });
    expect(wrong(await judged({ days: 90, records: 1_000_000 }))).toEqual([]);
    expectOne(
      await judged({ days: 90, records: 100 }),
      'warning',
      /48 records.* 24 a day.* after 4 days, but the config keeps 90/,
      /retention/,
    );
    expectOne(
      await judged({ days: 0.5 }),
      'warning',
      /oldest is 2 days old\. The config keeps 0\.5 days/,
      /removes old records/,
    );
  });
});

describe('files and the machine', () => {
  test('a data folder with too little space is found', async () => {
    expectOne(await found('disk', { minFree: 2 ** 60 }), 'warning', /are free for/, /larger disk/);
    expect(wrong(await found('disk'))).toEqual([]);
  });

  test.skipIf(process.getuid?.() === 0)('a data folder that cannot be written is an error', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'data'), { mode: 0o500 });
    expectOne(await found('disk', { folder }), 'error', /is not writable/, /chown/);
  });

  test('files with secrets that others can read are found', async () => {
    const folder = temporaryFolder();
    const write = (name: string, text: string, mode: number): void => {
      writeFileSync(join(folder, name), text);
      chmodSync(join(folder, name), mode);
    };
    write('.env', 'A=1', 0o644);
    expectOne(await found('secrets', { folder }), 'warning', /\.env contains secrets.*mode 644/, /chmod o= /);
    chmodSync(join(folder, '.env'), 0o600);
    write('gateway.config.ts', "export default { key: 'sk-0123456789abcdefghijkl' };", 0o644);
    expectOne(await found('secrets', { folder }), 'warning', /gateway\.config\.ts contains secrets/, /chmod/);
    write('gateway.config.ts', "export default { key: env('KEY') };", 0o644);
    expect(wrong(await found('secrets', { folder }))).toEqual([]);
    write('sluice.db', '', 0o644);
    const config = { database: `SQLITE://${join(folder, 'sluice.db')}` };
    expectOne(await found('secrets', { folder, config }), 'warning', /sluice\.db contains secrets/, /chmod/);
  });

  test('weak passwords and a bootstrap key are found', async () => {
    const weak = await found('secrets', { config: { adminPassword: 'AdminAdmin12' } });
    expectOne(weak, 'error', /easy to guess/, /openssl rand/);
    const config = { adminPassword: 'kX7-pq2Zr9vLm4', bootstrapKey: 'sk-0123456789abcdefghij' };
    expectOne(await found('secrets', { config }), 'warning', /bootstrap key is still set/, /remove/);
  });

  test('listening for everybody without a proxy in front is a warning', async () => {
    const everywhere = { listen: { host: '0.0.0.0' } };
    expectOne(await found('listen', { config: everywhere }), 'warning', /without TLS/, /trustedProxies/);
    const behind = { ...everywhere, trustedProxies: ['10.0.0.0/8'] };
    expect(wrong(await found('listen', { config: behind }))).toEqual([]);
  });

  test('limits of open files and of memory are compared with what the config needs', () => {
    const examined = examinedOf({ config: { overload: { running: 1_000 }, workers: 1 } });
    expect(wrong(fileFindings(examined, 2_200))).toEqual([]);
    expectOne(fileFindings(examined, 1_024), 'warning', /enough for 412 concurrent calls/, /2200/);
    expect(wrong(memoryFindings(examined, gibibyte))).toEqual([]);
    const many = examinedOf({ config: { workers: 8, database: 'sqlite:./x.db' } });
    expectOne(memoryFindings(many, gibibyte), 'warning', /too little for 8 workers/, /2\.0 GiB/);
  });

  test('a version of Node without support is a warning', () => {
    const now = Date.parse('2026-11-26');
    expect(nodeFinding('24.21.0', now).status).toBe('ok');
    expect(nodeFinding('25.1.0', now)).toMatchObject({ status: 'warning', message: /no long-term support/ });
    expect(nodeFinding('22.20.0', Date.parse('2027-06-01'))).toMatchObject({ status: 'warning' });
  });
});

describe('providers', () => {
  const channel = (url: string, more: object = {}) => ({
    config: {
      channels: [
        openaiChannel({ id: 'mine', key: 'channel-key-0123456789', baseUrl: url, models: ['x'], ...more }),
      ],
    },
  });

  test('that answer are sound, and one that is away is an error', async () => {
    const upstream = await startUpstream((_request, response) => void response.end('{}'));
    onTestFinished(() => upstream.close());
    expect(wrong(await found('providers', channel(`${upstream.url}/v1`)))).toEqual([]);
    const away = channel(`http://127.0.0.1:${await freePort()}/v1`);
    expectOne(
      await found('providers', away),
      'error',
      /mine: cannot connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED/,
      /baseUrl/,
    );
  });

  test('are asked for their models where that is wanted', async () => {
    let status = 200;
    const upstream = await startUpstream((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(status === 200 ? { data: [{ id: 'x' }] } : { error: { message: 'bad key' } }),
      );
    });
    onTestFinished(() => upstream.close());
    const asking = { ...channel(`${upstream.url}/v1`), asksProviders: true };
    expect((await found('providers', asking)).map(({ message }) => message)).toContain(
      'mine: the provider accepts the key and lists 1 models.',
    );
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer channel-key-0123456789');
    status = 401;
    expectOne(await found('providers', asking), 'error', /cannot list the models/, /key of the channel/);
  });

  const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
  test.skipIf(!hasOpenssl)(
    'with a certificate that ends soon are found, and those with a wrong one',
    async () => {
      const folder = temporaryFolder();
      const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
      const args = [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        key,
        '-out',
        cert,
      ];
      spawnSync('openssl', [
        ...args,
        '-days',
        '10',
        '-subj',
        '/CN=localhost',
        '-addext',
        'subjectAltName=DNS:localhost',
      ]);
      const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }).listen(
        0,
        '127.0.0.1',
      );
      await once(server, 'listening');
      onTestFinished(() => void server.close());
      const url = `https://localhost:${(server.address() as AddressInfo).port}/v1`;
      const tls = { ca: readFileSync(cert, 'utf8') };
      const soon = await found('providers', channel(url, { tls }));
      expectOne(soon, 'warning', /the certificate of localhost:\d+ expires in (9|10) days/, /Renew/);
      const later = await found('providers', { ...channel(url, { tls }), certificateDays: 5 });
      expect(wrong(later)).toEqual([]);
      const after = await found('providers', {
        ...channel(url, { tls }),
        now: () => Date.now() + 13 * 86_400_000,
      });
      expectOne(after, 'warning', /the certificate of localhost:\d+ has expired\./, /Renew/);
      expectOne(await found('providers', channel(url)), 'error', /self-signed certificate/, /tls/);
    },
  );
});
