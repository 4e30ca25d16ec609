import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { sendWithToken } from '../plugins/admin/_token-client.ts';
import { startGateway } from '../support/gateway.ts';
import { connectionOf } from '../support/sqlite.ts';
import { startPostgres, withoutPostgres } from '../support/postgres.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

const keyed = (key: string) => ({ 'idempotency-key': key });

async function keysNamed(page: Admin, name: string): Promise<number> {
  const { keys } = await page.request('listKeys', { query: { search: name } });
  return keys.length;
}

describe.each(newDatabases())('creating with an idempotency-key: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'gives the same answer again, the secret too, on each gateway',
    async () => {
      const [one, other] = await twoGateways(await url());
      const page = await logIn(one.url);
      const { value: token } = await page.request('createToken', {
        body: { name: 'ci', scopes: ['keys:write', 'owners:write', 'tokens:write'] },
      });
      const send = (gateway: string, body: object, key = 'k-1') =>
        sendWithToken(gateway, token, 'createKey', { body, headers: keyed(key) });
      const first = await send(one.url, { name: 'once' });
      const again = await send(other.url, { name: 'once' });
      expect([first.status, again.status]).toEqual([201, 201]);
      expect(again.body).toEqual(first.body);
      expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
      expect(await keysNamed(page, 'once')).toBe(1);

      expect(await send(other.url, { name: 'another' })).toMatchObject({
        status: 422,
        body: { error: { code: 'idempotency_key_reused', param: 'idempotency-key' } },
      });
      expect((await send(one.url, { name: 'once' }, 'k-2')).body).not.toEqual(first.body);
      // Of somebody else it is another request, and so it is at another route.
      const { key } = await page.request('createKey', { body: { name: 'once' }, headers: keyed('k-1') });
      expect(key.id).not.toBe((first.body['key'] as { id: string }).id);
      const owner = await sendWithToken(one.url, token, 'createOwner', {
        body: { kind: 'team', name: 'once' },
        headers: keyed('k-1'),
      });
      expect(owner.status).toBe(201);
    },
  );

  test.skipIf(skip !== undefined)(
    'makes one thing when twins come at the same time to two gateways',
    async () => {
      const [one, other] = await twoGateways(await url());
      const page = await logIn(one.url);
      const { value: token } = await page.request('createToken', {
        body: { name: 'ci', scopes: ['keys:write'] },
      });
      const gateways = [one.url, other.url, one.url, other.url, one.url, other.url];
      const answers = await Promise.all(
        gateways.map((gateway) =>
          sendWithToken(gateway, token, 'createKey', { body: { name: 'twin' }, headers: keyed('twins') }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(gateways.map(() => 201));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(await keysNamed(page, 'twin')).toBe(1);
    },
  );

  test.skipIf(skip !== undefined)(
    'forgets a request that was refused, and refuses a key that is none',
    async () => {
      const [one] = await twoGateways(await url());
      const page = await logIn(one.url);
      const body = { name: 'late', team: 'team_nobody' };
      expect(await page.refused('createKey', { body, headers: keyed('again') })).toMatchObject({
        status: 400,
      });
      await page.request('createKey', { body: { name: 'late' }, headers: keyed('again') });
      for (const key of ['', 'two words', 'x'.repeat(256)])
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect(await page.refused('createKey', { body: { name: 'x' }, headers: keyed(key) })).toMatchObject({
          status: 400,
          body: { error: { param: 'idempotency-key' } },
        });
    },
  );
});

test('keeps no secret in the clear', async () => {
  const gateway = await startGateway({ adminPassword, channels: [demo()] });
  onTestFinished(() => gateway.close());
  const page = await logIn(gateway.url);
  const { value } = await page.request('createKey', { body: { name: 'sealed' }, headers: keyed('k') });
  const rows = connectionOf(gateway.stores).prepare('SELECT value FROM keyv').all();
  expect(rows.length).toBeGreaterThan(0);
  expect(JSON.stringify(rows)).not.toContain(value);
});

test.skipIf(withoutPostgres() !== undefined)(
  'a database that is lost in the middle of a create never leads to two things',
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.close());
    const database = await postgres.createDatabase('hasty');
    const gateway = await startGateway({ adminPassword, database, channels: [demo()] });
    onTestFinished(() => gateway.close());
    const page = await logIn(gateway.url);
    const send = () => page.send('createKey', { body: { name: 'unsure' }, headers: keyed('unsure') });
    const running = Array.from({ length: 20 }, (_, at) =>
      page.send('createKey', { body: { name: 'unsure' }, headers: keyed(`unsure-${at % 5}`) }),
    );
    await postgres.kill();
    await Promise.allSettled([...running, send()]);
    await postgres.start();
    await expect.poll(async () => (await page.send('session')).status).toBe(200);
    const last = await Promise.all(
      Array.from({ length: 5 }, (_, at) =>
        page.send('createKey', { body: { name: 'unsure' }, headers: keyed(`unsure-${at}`) }),
      ),
    );
    // Made now, made before, or a sentence that says that nobody knows.
    for (const { status } of last) expect([201, 409]).toContain(status);
    expect(await keysNamed(page, 'unsure')).toBeLessThanOrEqual(6);
    const codes = await Promise.all(
      last.filter(({ status }) => status === 409).map(async (answer) => (await answer.json()) as object),
    );
    for (const body of codes)
      expect(body).toMatchObject({ error: { message: expect.stringMatching(/first request with this/) } });
  },
);
