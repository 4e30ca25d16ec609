import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openRates } from '../../../../core/money/rates/open.ts';
import type { Rates } from '../../../../core/money/rates/index.ts';
import { sharedSchema, type SharedStoreSettings } from '../../../../core/settings/shared.ts';
import { maskSecrets } from '../../../../core/log.ts';
import { hideSecretsIn } from '../../../../core/settings/secret.ts';
import { readSharedAddress } from '../../../../core/settings/shared-address.ts';
import { checkSharedStore } from '../../../../core/state/links/shared-link.ts';
import {
  makeAuthority,
  withoutOpenssl,
  type Authority,
  type Certificate,
} from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { freePort } from '../../../support/free-port.ts';
import { withoutRedis } from '../../../support/redis.ts';
import { serverPassword, startRedisServer, type RedisTopology } from '../../../support/redis-topologies.ts';

describe('addresses of a shared store', () => {
  test.each([
    ['redis://host', { kind: 'single', tls: false, nodes: [{ host: 'host', port: 6379 }], database: 0 }],
    [
      'rediss://me:a%20b@host:7000/3',
      { tls: true, nodes: [{ host: 'host', port: 7000 }], database: 3, username: 'me', password: 'a b' },
    ],
    [
      'redis+sentinel://:x@one,two:5000/mymaster/2',
      {
        kind: 'sentinel',
        nodes: [
          { host: 'one', port: 26_379 },
          { host: 'two', port: 5000 },
        ],
        master: 'mymaster',
        database: 2,
        password: 'x',
      },
    ],
    ['rediss+cluster://[::1]:7000', { kind: 'cluster', tls: true, nodes: [{ host: '::1', port: 7000 }] }],
  ])('%s', (url, expected) => expect(readSharedAddress(url).address).toMatchObject(expected));

  test.each([
    ['http://host', /^is not the URL of a shared store.*Write redis:/],
    ['redis://', /^is not the URL of a shared store.*Write redis:/],
    ['redis://host?database=1', /^is not the URL of a shared store.*"\?"/],
    ['redis://host/1#x', /^is not the URL of a shared store.*"#"/],
    ['redis://one,two', /^has invalid hosts\. Write redis:/],
    ['redis://host:99999', /^has invalid hosts\. Write redis:/],
    ['redis://host/db', /^has a database that is not a number/],
    ['redis://host/%zz', /^has a path that is not percent-encoded/],
    ['redis+sentinel://one/%zz', /^has a path that is not percent-encoded/],
    ['redis://:100%@host', /^has a user or password that is not percent-encoded/],
    ['redis+sentinel://one,two', /^does not name the master: redis\+sentinel:/],
    ['redis+cluster://one/1', /^has a database, but a cluster has only database 0/],
  ])('%s is refused with what to write', (url, problem) => {
    const { error } = sharedSchema.safeParse({ url });
    expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringMatching(problem)]);
  });
});

test('passwords in addresses of several hosts are masked', () => {
  hideSecretsIn(sharedSchema, { url: 'redis+sentinel://me:canary%20one@one,two/mymaster' });
  hideSecretsIn(sharedSchema, { url: 'rediss+cluster://:canary-two@one:1,two:2' });
  expect(maskSecrets('canary one, canary%20one, canary-two')).toBe('…, …, …');
});

const missing = withoutRedis() ?? withoutOpenssl();

describe.skipIf(missing !== undefined)(
  `a Redis with users${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let server: RedisTopology & { readonly port: number };
    const at = (credentials: string, rest = ''): SharedStoreSettings => ({
      url: `redis://${credentials}@127.0.0.1:${server.port}${rest}`,
    });
    const user = encodeURIComponent(serverPassword);

    beforeAll(async () => {
      server = await startRedisServer('--requirepass', serverPassword, '--databases', '4');
      await eventually(() => server.cli(server.port, 'PING').includes('PONG'));
      const set = (...words: string[]): string => server.cli(server.port, 'ACL', 'SETUSER', ...words);
      set('sluice', 'on', '>pass', '~sluice:*', '+@all', '-@dangerous', '-@admin');
      set('listed', ...'on >pass ~sluice:* +ping +select +time +eval +evalsha +script|load'.split(' '));
      set('listed', ...'+del +pexpire +pttl +@string +@hash +@sortedset'.split(' '));
      set('other-keys', 'on', '>pass', '~other:*', '+@all');
      set('no-scripts', 'on', '>pass', '~*', '+@all', '-@scripting');
      set('no-time', 'on', '>pass', '~*', '+@all', '-time');
    });
    afterAll(() => server.close());

    test.each(['sluice', 'listed'])(
      'takes a user with the commands that the guide names: %s',
      async (name) => {
        const rates = opened(at(`${name}:pass`));
        const subject = `s:${Math.random()}`;
        const rule = { subject: `${subject}:calls`, limit: 1 };
        const verdicts = [
          await rates.take([{ subject, limit: 5, cost: 1 }], [rule]),
          await rates.take([{ subject, limit: 5, cost: 1 }], [rule]),
        ];
        expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, false]);
        expect(verdicts.map(({ degraded }) => degraded)).toEqual([undefined, undefined]);
      },
    );

    test('takes the right password, and a user who may use no more than the keys of the gateway', async () => {
      await checkSharedStore(at(`:${user}`));
      await checkSharedStore(at('sluice:pass', '/3'));
      await checkSharedStore({
        url: `redis://127.0.0.1:${server.port}`,
        username: 'sluice',
        password: 'pass',
      });
      const rates = opened(at('sluice:pass'));
      const subject = `s:${Math.random()}`;
      const verdict = await rates.take(
        [{ subject, limit: 5, cost: 1 }],
        [{ subject: `${subject}:calls`, limit: 1 }],
      );
      expect(verdict).toMatchObject({ allowed: true });
      expect(verdict.degraded).toBeUndefined();
    });

    test.each([
      [':wrong', '', /refuses the user or the password.*shared\.password/],
      ['', '', /asks for a password/],
      ['other-keys:pass', '', /permissions.*sluice:\*/],
      ['no-scripts:pass', '', /permissions/],
      ['no-time:pass', '', /permissions/],
      ['sluice:pass', '/4', /no database of this number/],
    ])('refuses %s%s for good', async (credentials, rest, problem) => {
      await expect(checkSharedStore(at(credentials, rest))).rejects.toThrow(problem);
    });

    test('says that it is no cluster, and no Sentinel', async () => {
      const hosts = `:${user}@127.0.0.1:${server.port}`;
      await expect(checkSharedStore({ url: `redis+cluster://${hosts}` })).rejects.toThrow(/is no cluster/);
      await expect(
        checkSharedStore({ url: `redis+sentinel://${hosts}/main`, sentinelPassword: serverPassword }),
      ).rejects.toThrow(/is no Sentinel/);
    });

    test('says that it has no password where one is given', async () => {
      const open = await startRedisServer();
      onTestFinished(() => open.close());
      await eventually(() => open.cli(open.port, 'PING').includes('PONG'));
      const url = `redis://:superfluous@127.0.0.1:${open.port}`;
      await expect(checkSharedStore({ url })).rejects.toThrow(/has no password.*remove it/);
    });

    test('one that is gone for now is no reason against a start', async () => {
      const url = `redis://127.0.0.1:${await freePort()}`;
      expect(await checkSharedStore({ url })).toBeUndefined();
    });
  },
);

function opened(store: SharedStoreSettings): Rates {
  const rates = openRates({ ...store, whenDown: 'refuse' }, () => {}, {});
  onTestFinished(() => rates.close());
  return rates;
}

describe.skipIf(missing !== undefined)(
  `a Redis with TLS${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let server: RedisTopology & { readonly port: number };
    let authority: Authority;
    let client: Certificate;
    let url: string;

    beforeAll(async () => {
      authority = makeAuthority();
      client = authority.issue('gateway');
      const own = authority.issue('localhost');
      const files = `--tls-ca-cert-file ${authority.certFile} --tls-cert-file ${own.certFile} --tls-key-file ${own.keyFile}`;
      server = await startRedisServer(...`--tls-port PORT --tls-auth-clients yes ${files}`.split(' '));
      url = `rediss://localhost:${server.port}`;
      const tls = [
        '--tls',
        '--cacert',
        authority.certFile,
        '--cert',
        client.certFile,
        '--key',
        client.keyFile,
      ];
      await eventually(() => server.cli(server.port, ...tls, 'PING').includes('PONG'));
    });
    afterAll(() => server.close());

    const identity = () => ({ ca: authority.cert, cert: client.cert, key: client.key });

    test('is used with its own authority and a certificate of the gateway', async () => {
      await checkSharedStore({ url, tls: identity() });
      const rates = opened({ url, tls: identity() });
      expect(await rates.take([{ subject: 's', limit: 5, cost: 1 }])).toMatchObject({ allowed: true });
      expect(rates.state).toBe('ok');
    });

    test('is refused without its authority, under another name, and without a certificate of the gateway', async () => {
      await expect(checkSharedStore({ url })).rejects.toThrow(/shared\.tls\.ca/);
      const byAddress = url.replace('localhost', '127.0.0.1');
      await expect(checkSharedStore({ url: byAddress, tls: identity() })).rejects.toThrow(
        /shared\.tls\.servername/,
      );
      await checkSharedStore({ url: byAddress, tls: { ...identity(), servername: 'localhost' } });
      await expect(checkSharedStore({ url, tls: { ca: authority.cert } })).rejects.toThrow(
        /shared\.tls\.cert/,
      );
    });
  },
);
