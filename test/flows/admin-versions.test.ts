import { describe, expect, test } from 'vitest';
import { logIn, type Admin } from '../plugins/admin/_client.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

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
    make: async (page) => (await page.ask('createKey', { body: { name: 'a', budgets } })).key,
    find: 'findKey',
    update: 'updateKey',
    remove: 'deleteKey',
  },
  {
    what: 'a team',
    make: (page) => page.ask('createOwner', { body: { kind: 'team', name: 'a', budgets } }),
    find: 'findOwner',
    update: 'updateOwner',
    remove: 'deleteOwner',
  },
];

const cases = newDatabases().flatMap(({ kind, url, skip }) =>
  subjects.map((subject) => ({ kind, url, skip, ...subject })),
);

describe.each(cases)(
  'two administrators edit $what at two gateways: $kind',
  ({ url, skip, make, find, update, remove }) => {
    test.skipIf(skip !== undefined)('the second is told, and may try again', async () => {
      const [one, other] = await twoGateways(await url());
      const pages = [await logIn(one.url), await logIn(other.url)] as const;
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
        body: { error: { code: 'conflict', message: expect.stringContaining('Somebody else has changed') } },
      });
      expect(await pages[1].refused(remove, { id, ...ifMatch(version) })).toMatchObject({ status: 412 });
      const untouched = await pages[1].send(find, { id });
      expect(untouched.headers.get('etag')).toBe(`"${fresh}"`);
      const told: unknown = await untouched.json();
      expect(told).toMatchObject({ note: 'first' });
      expect(told).not.toHaveProperty('requestsPerMinute');

      const again = await pages[1].send(update, { ...stale, ...ifMatch(fresh) });
      expect(again.status).toBe(200);
      // Without the header the last writer wins.
      expect((await pages[0].send(update, { id, body: { note: 'last' } })).status).toBe(200);
    });
  },
);

describe.each(newDatabases())('a version: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)('lets exactly one of two who write at the same moment pass', async () => {
    const [one, other] = await twoGateways(await url());
    const pages = [await logIn(one.url), await logIn(other.url)] as const;
    const { id, version } = await pages[0].ask('createOwner', { body: { kind: 'team', name: 'raced' } });
    await pages[1].ask('findOwner', { id });
    const statuses = await Promise.all(
      pages.map(async (page, index) => {
        const headers = { 'if-match': `"${version}"` };
        const answer = await page.send('updateOwner', { id, body: { note: `by ${index}` }, headers });
        return answer.status;
      }),
    );
    expect(statuses.toSorted()).toEqual([200, 412]);
  });

  test.skipIf(skip !== undefined)('of a key stays where it is used or rotated', async () => {
    const [one] = await twoGateways(await url());
    const page = await logIn(one.url);
    const { key, value } = await page.ask('createKey', { body: { name: 'used' } });
    await fetch(`${one.url}/v1/models`, { headers: { authorization: `Bearer ${value}` } });
    const { key: rotated } = await page.ask('rotateKey', { id: key.id, body: {} });
    expect(rotated.version).toBe(key.version);
  });
});
