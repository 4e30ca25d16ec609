import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

/** The page that a browser shows when its requests reach another gateway. */
const onto =
  (page: Admin, { url }: TestGateway) =>
  (path: string) =>
    fetch(`${url}/api/admin/${path}`, { headers: { cookie: page.cookie } });

async function status({ url }: TestGateway, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

describe.each(newDatabases())('two gateways on one database: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)('share logins, and the end of them', async () => {
    const [one, other] = await twoGateways(await url());
    const page = await logIn(one.url);
    const elsewhere = onto(page, other);
    const response = await elsewhere('session');
    expect(await response.json()).toMatchObject({ csrfToken: page.csrfToken });
    await page.request('logout');
    expect((await elsewhere('session')).status).toBe(401);
  });

  test.skipIf(skip !== undefined)('forget every login when the password was replaced', async () => {
    const database = await url();
    const [one] = await twoGateways(database);
    const page = await logIn(one.url);
    const third = await startGateway({
      adminPassword: 'another long password',
      database,
      channels: [demo()],
    });
    onTestFinished(() => third.close());
    expect(await page.refused('session')).toMatchObject({ status: 401 });
    await logIn(one.url, 'another long password');
  });

  test.skipIf(skip !== undefined)(
    'follow each other within about a second: keys, and channels that are switched off',
    async () => {
      const [one, other] = await twoGateways(await url());
      const page = await logIn(one.url);
      const { key, value } = await page.request('createKey', { body: { name: 'shared' } });
      await eventually(async () => expect(await status(other, value)).toBe(200));

      await page.request('disableChannel', { id: 'demo' });
      expect(await status(one, value)).toBe(503);
      await eventually(async () => expect(await status(other, value)).toBe(503));
      await page.request('enableChannel', { id: 'demo' });
      await eventually(async () => expect(await status(other, value)).toBe(200));

      const { value: fresh } = await page.request('rotateKey', { id: key.id });
      await eventually(async () => expect(await status(other, value)).toBe(401));
      expect(await status(other, fresh)).toBe(200);
      await page.request('deleteKey', { id: key.id });
      await eventually(async () => expect(await status(other, fresh)).toBe(401));
    },
  );

  test.skipIf(skip !== undefined)('accept the old secret of a rotated key until its grace ends', async () => {
    const [one, other] = await twoGateways(await url());
    const page = await logIn(one.url);
    const { key, value } = await page.request('createKey', { body: { name: 'shared' } });
    await eventually(async () => expect(await status(other, value)).toBe(200));
    const { value: fresh, key: rotated } = await page.request('rotateKey', {
      id: key.id,
      body: { graceSeconds: 3_600 },
    });
    expect(rotated.oldSecret).toMatchObject({ prefix: key.prefix, suffix: key.suffix });
    for (const secret of [value, fresh, value, fresh]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, across the refresh of the other gateway
      expect([await status(one, secret), await status(other, secret)]).toEqual([200, 200]);
    }
    const { keys } = await page.request('listKeys');
    expect(keys.find(({ id }) => id === key.id)?.oldSecret?.lastUsedAt).toBeGreaterThan(0);

    const ended = await page.request('endOldSecret', { id: key.id });
    expect(ended).not.toHaveProperty('oldSecret');
    await eventually(async () => expect(await status(other, value)).toBe(401));
    expect([await status(one, value), await status(other, fresh)]).toEqual([401, 200]);
    expect(await page.refused('endOldSecret', { id: key.id })).toMatchObject({ status: 404 });
    expect(await page.refused('rotateKey', { id: key.id, body: { graceSeconds: 2_592_001 } })).toMatchObject({
      status: 400,
      body: { error: { param: 'graceSeconds' } },
    });
    const { entries } = await page.request('listAudit');
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'key-old-secret-end', target: key.id },
      { action: 'key-rotate', target: key.id, after: { graceSeconds: 3_600 } },
    ]);
  });

  test.skipIf(skip !== undefined)('know at once which owners the other has made', async () => {
    const [one, other] = await twoGateways(await url());
    const [page, elsewhere] = [await logIn(one.url), await logIn(other.url)];
    const organisation = await page.request('createOwner', { body: { kind: 'organisation', name: 'Acme' } });
    const team = await elsewhere.request('createOwner', {
      body: { kind: 'team', name: 'research', organisation: organisation.id },
    });
    expect(await page.request('findOwner', { id: team.id })).toMatchObject({ name: 'research' });
    const { key } = await page.request('createKey', { body: { name: 'of the team', team: team.id } });
    expect(key).toMatchObject({ team: team.id, teamName: 'research' });
    const ada = await elsewhere.request('createOwner', { body: { kind: 'member', name: 'Ada' } });
    await page.request('updateOwner', { id: ada.id, body: { organisation: organisation.id } });
    expect(await elsewhere.request('listOwners')).toMatchObject({
      owners: expect.arrayContaining([
        expect.objectContaining({ id: ada.id, organisation: organisation.id }),
      ]),
    });
    await page.request('updateKey', { id: key.id, body: { member: ada.id } });
    expect(await elsewhere.request('findKey', { id: key.id })).toMatchObject({ memberName: 'Ada' });
  });

  test.skipIf(skip !== undefined)('keep usage, audit and switches over a restart', async () => {
    const database = await url();
    const first = await startGateway({ adminPassword, database, channels: [demo()] });
    const page = await logIn(first.url);
    expect(await status(first, first.key)).toBe(200);
    await page.request('disableChannel', { id: 'demo' });
    await first.close();

    const second = await startGateway({ adminPassword, database, channels: [demo()] });
    onTestFinished(() => second.close());
    expect(await status(second, second.key)).toBe(503);
    const elsewhere = onto(page, second);
    expect(await (await elsewhere('usage?outcome=ok')).json()).toMatchObject({
      records: [{ model: 'demo' }],
    });
    expect(await (await elsewhere('audit')).json()).toMatchObject({
      entries: [{ action: 'channel-disable', target: 'demo' }, { action: 'login' }],
    });
    const overview = await elsewhere('overview?range=1h');
    expect(await overview.json()).toMatchObject({ health: { disabledChannels: ['demo'] } });
  });
});
