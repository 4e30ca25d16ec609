import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../support/postgres.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

interface Outcome {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

async function call({ url }: TestGateway, key: string): Promise<Outcome> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
  });
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    text: await response.text(),
  };
}

const stranger = (number: number): string => `sk-nobody-${String(number).padStart(30, '0')}`;

describe.each(newDatabases())('two gateways on one database: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'a flood of keys that are none keeps no call from being served, with a key in use or a new one',
    async () => {
      const [one, other] = await twoGateways(await url());
      const used = await other.apiKeys.create({ name: 'used' });
      expect((await call(one, used.value)).status).toBe(200);
      const flood = Promise.all(Array.from({ length: 600 }, (_, number) => call(one, stranger(number))));
      for (let number = 0; number < 5; number += 1) {
        const { value } = await other.apiKeys.create({ name: `cold ${number}` });
        expect((await call(one, value)).status).toBe(200);
        expect((await call(one, used.value)).status).toBe(200);
      }
      expect(new Set((await flood).map(({ status }) => status))).toEqual(new Set([401]));
      expect(one.apiKeys.held).toMatchObject({ strangers: 600 });
      await other.apiKeys.revoke(used.record.id);
      await eventually(async () => expect((await call(one, used.value)).status).toBe(401));
    },
  );
});

const missing = withoutPostgres();

describe.skipIf(missing !== undefined)(
  `a database that does not answer${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let postgres: TestPostgres;
    beforeAll(async () => {
      postgres = await startPostgres();
    });
    afterAll(() => postgres.close());

    test.each(['gone', 'silent'] as const)(
      'that is %s: keys in use go on, others get 503 with retry-after and never 401, until it is back',
      async (how) => {
        const database = await postgres.createDatabase('hasty');
        const start = () => startGateway({ database, channels: [demo()] });
        const [gateway, office] = [await start(), await start()];
        onTestFinished(async () => {
          await Promise.all([gateway.close(), office.close()]);
        });
        const used = await office.apiKeys.create({ name: 'used' });
        const cold = await office.apiKeys.create({ name: 'cold' });
        expect((await call(gateway, used.value)).status).toBe(200);
        if (how === 'gone') await postgres.kill();
        else postgres.pause();
        try {
          expect((await call(gateway, used.value)).status).toBe(200);
          for (const key of [cold.value, stranger(1)]) {
            const result = await call(gateway, key);
            expect(result).toMatchObject({ status: 503, retryAfter: '1' });
            expect(result.text).toContain('This API key cannot be checked now.');
          }
          expect((await call(gateway, used.value)).status).toBe(200);
        } finally {
          if (how === 'gone') await postgres.start();
          else postgres.resume();
        }
        await eventually(async () => expect((await call(gateway, cold.value)).status).toBe(200));
        expect((await call(gateway, stranger(1))).status).toBe(401);
      },
    );
  },
);
