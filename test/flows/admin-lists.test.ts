import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import type { KeyWithValue } from '../../plugins/admin/schemas/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let admin: Admin;

beforeAll(async () => {
  gateway = await startGateway({
    adminPassword,
    prices: { demo: { input: 1000, output: 1000 } },
    channels: [demo()],
  });
  admin = await logIn(gateway.url);
});
afterAll(() => gateway.close());

type Query = Readonly<Record<string, string | number>>;

describe('the usage log in the admin API', () => {
  let keyId = '';
  /** The ids of three calls, as their client saw them: one is the cheapest but for the free one, one the dearest, one slow and free. */
  const ids: string[] = [];

  const list = async (query: Query): Promise<string[]> =>
    (await admin.request('listUsage', { query: { keyId, ...query } })).records.map(({ id }) => id);

  beforeAll(async () => {
    const { key, value } = await admin.request('createKey', { body: { name: 'Listed' } });
    keyId = key.id;
    const calls = [
      ['demo', 'Hello'],
      ['demo', 'Hello '.repeat(2_000)],
      ['demo-thinking', '!slow-first=1500 Hello'],
    ] as const;
    for (const [model, content] of calls) {
      // oxlint-disable-next-line no-await-in-loop -- the order of the calls is that of their records
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
      });
      await response.text();
      ids.push(response.headers.get('x-request-id') ?? '');
    }
    await eventually(async () => {
      if ((await list({})).length < ids.length) throw new Error('not all calls are recorded');
    });
  });

  test('finds a call by the id that its client saw', async () => {
    expect(await list({ id: ids[1] ?? '' })).toEqual([ids[1]]);
    expect(await list({ id: 'req_of_nobody' })).toEqual([]);
  });

  test('is narrowed by cost and by duration', async () => {
    const [cheap, dear, slow] = ids;
    expect(await list({ minMicroDollars: 1_000_000 })).toEqual([dear]);
    expect(await list({ maxMicroDollars: 999_999 })).toEqual([slow, cheap]);
    expect(await list({ minMs: 1_400 })).toContain(slow);
    expect(await list({ minMs: 1_400, maxMs: 1_399 })).toEqual([]);
    const { sums } = await admin.request('sumUsage', {
      query: { keyId, by: 'model', minMicroDollars: 1_000_000 },
    });
    expect(sums).toMatchObject([{ group: 'demo', calls: 1 }]);
    const table = await admin.send('exportUsage', { query: { keyId, minMicroDollars: 1_000_000 } });
    expect((await table.text()).trim().split('\r\n')).toHaveLength(2);
  });

  test('is sorted by duration and by cost, in pages, with the names of keys', async () => {
    const [cheap, dear, slow] = ids;
    expect(await list({ sort: 'cost' })).toEqual([dear, cheap, slow]);
    const page = await admin.request('listUsage', { query: { keyId, sort: 'duration', limit: 3 } });
    const times = page.records.map(({ ms }) => ms);
    expect(times).toEqual(times.toSorted((one, other) => other - one));
    expect(page.records).toMatchObject([{ keyName: 'Listed' }, { keyName: 'Listed' }, { keyName: 'Listed' }]);
    expect(page).not.toHaveProperty('next');
    expect(page).not.toHaveProperty('comparedSince');
    for (const sort of ['duration', 'cost']) {
      const pages: string[] = [];
      for (let after: string | undefined, count = 0; count < 9; count += 1) {
        const query = { keyId, sort, limit: 1, ...(after !== undefined && { after }) };
        const { records, next } = await admin.request('listUsage', { query });
        pages.push(...records.map(({ id }) => id));
        after = next;
        if (after === undefined) break;
      }
      expect(pages).toEqual(await list({ sort }));
    }
    expect(await list({ sort: 'time' })).toEqual(await list({}));
  });

  test.each([
    [{ sort: 'name' }, 'sort'],
    [{ sort: 'cost', after: '1.req_x' }, 'after'],
    [{ minMs: -1 }, 'minMs'],
    [{ maxMs: 'long' }, 'maxMs'],
    [{ minMicroDollars: 0.5 }, 'minMicroDollars'],
    [{ maxMicroDollars: '1e400' }, 'maxMicroDollars'],
    [{ id: '' }, 'id'],
    [{ id: 'x'.repeat(201) }, 'id'],
  ])('refuses %j and names the field', async (query: Query, param) => {
    expect(await admin.refused('listUsage', { query })).toMatchObject({
      status: 400,
      body: { error: { param } },
    });
  });
});

describe('API keys in the admin API', () => {
  const made: KeyWithValue[] = [];
  const found = async (query: Query): Promise<string[]> =>
    (await admin.request('listKeys', { query })).keys.map(({ name }) => name).toSorted();

  beforeAll(async () => {
    const bodies = [
      { name: 'Billing, nightly', note: 'Owner: Zoë Ångström' },
      { name: 'Search 100%_', note: 'Owner: Grace' },
      { name: 'billing (old)' },
    ];
    for (const body of bodies) made.push(await admin.request('createKey', { body }));
  });

  test('are found by a part of their name or note, in upper or lower case', async () => {
    expect(await found({ search: 'BILL' })).toEqual(['Billing, nightly', 'billing (old)']);
    expect(await found({ search: 'zoë ÅNG' })).toEqual(['Billing, nightly']);
    expect(await found({ search: ' grace ' })).toEqual(['Search 100%_']);
    expect(await found({ search: 'nobody has this' })).toEqual([]);
  });

  test('are found by their id and by the first characters of their secret', async () => {
    const [first] = made;
    expect(await found({ search: first?.key.id ?? '' })).toEqual(['Billing, nightly']);
    expect(await found({ search: first?.value.slice(0, 7) ?? '' })).toContain('Billing, nightly');
    // No more of a secret is stored than that.
    expect(await found({ search: first?.value.slice(0, 8) ?? '' })).toEqual([]);
  });

  test('are compared with the text as it is, without patterns', async () => {
    expect(await found({ search: '100%_' })).toEqual(['Search 100%_']);
    expect(await found({ search: '%' })).toEqual(['Search 100%_']);
    expect(await found({ search: 'b.*g' })).toEqual([]);
  });

  test('that were found come in pages too', async () => {
    const page = await admin.request('listKeys', { query: { search: 'billing', limit: 1 } });
    const next = await admin.request('listKeys', {
      query: { search: 'billing', limit: 1, after: page.next ?? '' },
    });
    expect([...page.keys, ...next.keys].map(({ name }) => name).toSorted()).toEqual([
      'Billing, nightly',
      'billing (old)',
    ]);
    expect(next).not.toHaveProperty('next');
  });

  test.each([[{ search: ' ' }], [{ search: 'x'.repeat(201) }]])('refuse the search %j', async (query) => {
    expect(await admin.refused('listKeys', { query })).toMatchObject({
      status: 400,
      body: { error: { param: 'search' } },
    });
  });
});
