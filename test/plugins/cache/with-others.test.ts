import { describe, expect, onTestFinished, test } from 'vitest';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import { eventually } from '../../support/eventually.ts';
import cache from '../../../plugins/cache/index.ts';
import { newDatabases } from '../../flows/_one-database.ts';
import { startGateway } from '../../support/gateway.ts';
import { adminPassword, logIn } from '../admin/_client.ts';
import { startProvider, usual } from './_provider.ts';
import { chat, post, started } from './_started.ts';

describe('with responses that the gateway stores', () => {
  test('a hit is stored under its own id, and a conversation goes on from it', async () => {
    const { gateway, provider } = await started();
    const body = { model: 'm', input: 'What is new?' };
    const [first, second] = [
      await post(gateway, '/v1/responses', body),
      await post(gateway, '/v1/responses', body),
    ];
    expect([first.cache, second.cache]).toEqual(['miss', 'hit']);
    const ids = [first, second].map((got) => (JSON.parse(got.body) as { id: string }).id);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      const headers = { authorization: `Bearer ${gateway.key}` };
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await fetch(`${gateway.url}/v1/responses/${id}`, { headers })).status).toBe(200);
    }
    // What follows is compared by the whole conversation, so that both go on alike.
    const next = ids.map((id) => ({ model: 'm', input: 'And?', previous_response_id: id }));
    expect((await post(gateway, '/v1/responses', next[0] ?? {})).cache).toBe('miss');
    expect((await post(gateway, '/v1/responses', next[1] ?? {})).cache).toBe('hit');
    expect(provider.requests).toHaveLength(2);
  });
});

describe('with limits of keys', () => {
  test('hits use no tokens of the minute and none of the budget, unless they are charged', async () => {
    const { gateway } = await started();
    const { value } = await gateway.apiKeys.create({
      name: 'limited',
      budgets: [{ unit: 'token', period: 'total', amount: 150 }],
    });
    const limited = { ...gateway, key: value };
    const more = { max_tokens: 5 };
    expect((await chat(limited, more)).cache).toBe('miss');
    for (let round = 0; round < 5; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const got = await chat(limited, more);
      expect([got.status, got.cache]).toEqual([200, 'hit']);
    }
  });

  test('calls that joined are charged their share when they end', async () => {
    const release = Promise.withResolvers<void>();
    const { gateway } = await started(
      { charge: 0.5 },
      async () => {
        await release.promise;
        return usual();
      },
      { prices: { m: { input: 5, output: 20 } } },
    );
    const calls = [chat(gateway), chat(gateway, { stream: true })];
    await eventually(async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return metrics.includes('\nsluice_running_calls 2\n');
    });
    release.resolve();
    await Promise.all(calls);
    const usageLog = openUsageLog(gateway.stores);
    const records = async () => (await usageLog.page({}, 10)).records;
    await eventually(async () => (await records()).length === 2);
    expect((await records()).map(({ microDollars = 0 }) => microDollars).toSorted((a, b) => a - b)).toEqual([
      100, 200,
    ]);
  });
});

describe.each(newDatabases())('gateways on one database of $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'find what the others keep, and follow when the operator deletes it',
    async () => {
      const database = await url();
      const provider = await startProvider('chat-completions');
      onTestFinished(() => provider.close());
      const start = async () => {
        const gateway = await startGateway({
          database,
          adminPassword,
          plugins: [cache()],
          channels: [provider.channel],
        });
        onTestFinished(() => gateway.close());
        return gateway;
      };
      const one = await start();
      const other = await start();
      // Both know the key of the first.
      const there = { url: other.url, key: one.key };
      expect((await chat(one)).cache).toBe('miss');
      await eventually(async () => (await chat(there)).cache === 'hit');
      const admin = await logIn(one.url);
      const purged = await fetch(`${one.url}/api/cache`, {
        method: 'DELETE',
        headers: { cookie: admin.cookie, 'x-csrf-token': admin.csrfToken },
      });
      expect(purged.status).toBe(200);
      const before = provider.requests.length;
      await eventually(async () => (await chat(there)).cache === 'miss');
      expect(provider.requests.length).toBeGreaterThan(before);
    },
  );
});
