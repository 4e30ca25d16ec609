import { describe, expect, test } from 'vitest';
import { logIn, type Admin, type Words } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import type { TestGateway } from '../support/gateway.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

/** Actions of an admin on a key, with the effect that must be visible while the key exists. */
const writes = {
  note: { route: 'updateKey', body: { note: 'kept' }, seen: { note: 'kept' } },
  limit: { route: 'updateKey', body: { requestsPerMinute: 1000 }, seen: { requestsPerMinute: 1000 } },
  disable: { route: 'disableKey', body: undefined, seen: { enabled: false } },
  rotate: { route: 'rotateKey', body: undefined, seen: {} },
  delete: { route: 'deleteKey', body: undefined, seen: {} },
} as const;
type Write = keyof typeof writes;
const names = Object.keys(writes) as Write[];
const pairs = names.flatMap((one, index) => names.slice(index).map((other) => [one, other] as const));
const rounds = process.env.SLUICE_FUZZ === 'all' ? 4 : 2;

interface Site {
  readonly gateways: readonly TestGateway[];
  readonly pages: readonly [Admin, Admin];
}

/** Two gateways on one database, and a page of the dashboard at each. */
async function open(database: string): Promise<Site> {
  const gateways = await twoGateways(database);
  const [one, other] = gateways;
  return { gateways, pages: [await logIn(one.url), await logIn(other.url)] };
}

const act = async (page: Admin, write: Write, id: string): Promise<{ status: number; value?: string }> => {
  const { route, body } = writes[write];
  const words: Words = body === undefined ? { id } : { id, body };
  const response = await page.send(route, words);
  const reply = (await response.json()) as { readonly value?: string };
  return { status: response.status, ...(reply.value === undefined ? {} : { value: reply.value }) };
};

async function statusOf({ url }: TestGateway, secret: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
  await response.arrayBuffer();
  return response.status;
}

describe.each(newDatabases())('two admins at two gateways on one database: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'change one key at the same moment: nothing is lost, and nothing that was deleted comes back',
    async () => {
      const { gateways, pages } = await open(await url());
      const listed = async (id: string) =>
        (await pages[0].request('listKeys')).keys.filter((key) => key.id === id);

      const race = async (one: Write, other: Write, what: string): Promise<void> => {
        const made = await pages[0].request('createKey', { body: { name: 'raced' } });
        const { id } = made.key;
        const did = [one, other];
        const outcomes = await Promise.all([act(pages[0], one, id), act(pages[1], other, id)]);
        const keys = await listed(id);
        const secrets = [made.value, ...outcomes.flatMap(({ value }) => value ?? [])];
        if (did.includes('delete')) {
          expect({ what, keys }).toEqual({ what, keys: [] });
          const good = outcomes.filter((_, index) => did[index] === 'delete').map(({ status }) => status);
          expect({ what, good }).toEqual({ what, good: expect.arrayContaining([200]) });
          for (const { status } of outcomes) expect([what, 200, 404]).toContain(status);
        } else {
          expect({ what, statuses: outcomes.map(({ status }) => status) }).toEqual({
            what,
            statuses: [200, 200],
          });
          expect({ what, count: keys.length }).toEqual({ what, count: 1 });
          expect({ what, key: keys[0] }).toMatchObject({
            what,
            key: { ...writes[one].seen, ...writes[other].seen },
          });
        }
        const working = did.includes('delete') || did.includes('disable') ? 0 : 1;
        for (const gateway of gateways) {
          // Clients who show a key that is not valid are made to wait: they ask only once the gateway knows.
          await eventually(async () => {
            const found = await Promise.all(secrets.map((secret) => gateway.apiKeys.lookUp(secret)));
            const valid = found.filter((key) => key?.state === 'valid');
            expect({ what, valid: valid.length }).toEqual({ what, valid: working });
          });
          const statuses = await Promise.all(secrets.map((secret) => statusOf(gateway, secret)));
          const answered = statuses.filter((status) => status === 200).length;
          expect({ what, answered }).toEqual({ what, answered: working });
        }
      };

      for (let round = 0; round < rounds; round += 1) {
        // Each pair has a key of its own: they race side by side.
        await Promise.all(
          pairs.map(([one, other]) => race(one, other, `${one} and ${other}, round ${round}`)),
        );
      }
    },
  );

  test.skipIf(skip !== undefined)(
    'switch a channel on and off at the same moment: both gateways end up with one of the two',
    async () => {
      const { pages } = await open(await url());
      const seen = (page: Admin) =>
        page.request('listChannels').then(({ channels }) => channels.map(({ enabled }) => enabled));
      for (let round = 0; round < rounds; round += 1) {
        // oxlint-disable no-await-in-loop -- one race after the other
        await Promise.all([
          pages[0].request('disableChannel', { id: 'demo' }),
          pages[1].request('enableChannel', { id: 'demo' }),
        ]);
        await eventually(async () => expect(await seen(pages[0])).toEqual(await seen(pages[1])));
        // What was switched last, with nobody racing, is what holds.
        await pages[round % 2 === 0 ? 0 : 1].request('disableChannel', { id: 'demo' });
        for (const page of pages) await eventually(async () => expect(await seen(page)).toEqual([false]));
        // oxlint-enable no-await-in-loop
      }
    },
  );

  test.skipIf(skip !== undefined)('a value that both choose for a key makes one key', async () => {
    const { gateways } = await open(await url());
    for (let round = 0; round < 6; round += 1) {
      const value = `sk-chosen-by-two-admins-${round}`;
      // oxlint-disable-next-line no-await-in-loop -- one race after the other
      const made = await Promise.allSettled(
        gateways.map(({ apiKeys }, index) => apiKeys.create({ name: `chosen ${index}`, value })),
      );
      expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    }
  });
});
