import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { newDatabases } from './_one-database.ts';

/** A thing with a version, as the routes about it name and show it. */
interface Subject {
  readonly what: string;
  make(page: Admin): Promise<{ readonly id: string; readonly version: string }>;
  readonly find: 'findKey' | 'findOwner';
  readonly update: 'updateKey' | 'updateOwner';
  readonly remove: 'deleteKey' | 'deleteOwner';
}

const budgets = [{ unit: 'micro-dollar', period: 'day', amount: 5, timeZone: 'Europe/Berlin' }];
const subjects: readonly Subject[] = [
  {
    what: 'a key',
    make: async (page) => (await page.request('createKey', { body: { name: 'a', budgets } })).key,
    find: 'findKey',
    update: 'updateKey',
    remove: 'deleteKey',
  },
  {
    what: 'a team',
    make: (page) => page.request('createOwner', { body: { kind: 'team', name: 'a', budgets } }),
    find: 'findOwner',
    update: 'updateOwner',
    remove: 'deleteOwner',
  },
];

describe.each(newDatabases())('administrators at two gateways on one database: $kind', ({ url, skip }) => {
  let gateways: readonly TestGateway[] = [];
  let pages: readonly [Admin, Admin];
  beforeAll(async () => {
    if (skip !== undefined) return;
    const database = await url();
    const start = () => startGateway({ adminPassword, database, channels: [demo()] });
    const [one, other] = [await start(), await start()];
    gateways = [one, other];
    pages = [await logIn(one.url), await logIn(other.url)];
  });
  afterAll(() => Promise.all(gateways.map((gateway) => gateway.close())));

  test.skipIf(skip !== undefined).each(subjects)(
    'who edit $what: the second is told, and may try again',
    async ({ make, find, update, remove }) => {
      const { id, version } = await make(pages[0]);
      const read = await pages[1].send(find, { id });
      expect(read.headers.get('etag')).toBe(`"${version}"`);
      expect(await read.json()).toMatchObject({ id, version });

      const ifMatch = (named: string) => ({ headers: { 'if-match': `"${named}"` } });
      const first = await pages[0].send(update, { id, body: { note: 'first' }, ...ifMatch(version) });
      expect(first.status).toBe(200);
      const fresh = first.headers.get('etag')?.replaceAll('"', '') ?? '';
      expect(fresh).not.toBe(version);

      const stale = { id, body: { requestsPerMinute: 7 }, ...ifMatch(version) };
      expect(await pages[1].refused(update, stale)).toMatchObject({
        status: 412,
        body: {
          error: { code: 'conflict', message: expect.stringContaining('This was changed since you read it') },
        },
      });
      expect(await pages[1].refused(remove, { id, ...ifMatch(version) })).toMatchObject({ status: 412 });
      const untouched = await pages[1].send(find, { id });
      expect(untouched.headers.get('etag')).toBe(`"${fresh}"`);
      const key: unknown = await untouched.json();
      expect(key).toMatchObject({ note: 'first' });
      expect(key).not.toHaveProperty('requestsPerMinute');

      const again = await pages[1].send(update, { ...stale, ...ifMatch(fresh) });
      expect(again.status).toBe(200);
      // Without the header the last writer wins.
      expect((await pages[0].send(update, { id, body: { note: 'last' } })).status).toBe(200);
    },
  );

  test.skipIf(skip !== undefined)('of two who write at the same moment exactly one passes', async () => {
    const { id, version } = await pages[0].request('createOwner', { body: { kind: 'team', name: 'raced' } });
    await pages[1].request('findOwner', { id });
    const statuses = await Promise.all(
      pages.map(async (page, index) => {
        const headers = { 'if-match': `"${version}"` };
        const answer = await page.send('updateOwner', { id, body: { note: `by ${index}` }, headers });
        return answer.status;
      }),
    );
    expect(statuses.toSorted()).toEqual([200, 412]);
  });

  test.skipIf(skip !== undefined)('see no other version of a key that was rotated', async () => {
    const { key } = await pages[0].request('createKey', { body: { name: 'used' } });
    const { key: rotated } = await pages[0].request('rotateKey', { id: key.id, body: {} });
    expect(rotated.version).toBe(key.version);
  });
});
