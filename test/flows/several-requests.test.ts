import { setTimeout as pass } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import openaiChannel from '../../channels/openai.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import { definePlugin, gathered } from '../../core/sdk/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** A plugin that sends several requests for one call, as a tool loop does: budgets hold for all of them together. */

const rounds = 4;

const looping = definePlugin({
  name: 'looping',
  stage: 'shape',
  setup() {
    return async function loops(call, next) {
      for (let round = 1; round < rounds; round += 1) {
        await gathered(call, await next(call.with({ body: call.body, decoded: true })));
        // A tool that takes its time.
        await pass(30);
      }
      return next(call.with({ decoded: true }));
    };
  },
});

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let usageLog: UsageLog;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(
        '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":100,"total_tokens":100}}',
      );
  });
  gateway = await startGateway({
    plugins: [looping()],
    channels: [openaiChannel({ key: 'k', baseUrl: `${upstream.url}/v1`, models: { m: 'gpt-4.1' } })],
    prices: { m: { input: 0, output: 10 } },
  });
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Calls with one key, eight at a time, until there are so many refusals. Returns what the calls of the key came to. */
async function spentOf(amount: number): Promise<number> {
  const { record, value } = await gateway.apiKeys.create({
    name: 'loops',
    budgets: [{ unit: 'micro-dollar', period: 'total', amount }],
  });
  let calls = 0;
  let refused = 0;
  const caller = async (): Promise<void> => {
    while (refused < 16 && calls < 100) {
      calls += 1;
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
        body: '{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}',
      });
      await response.text();
      expect([200, 429]).toContain(response.status);
      if (response.status === 429) refused += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, caller));
  await expect.poll(async () => (await usageLog.page({ keyId: record.id }, 200)).records.length).toBe(calls);
  const { records } = await usageLog.page({ keyId: record.id }, 200);
  return records.reduce((sum, { microDollars = 0 }) => sum + microDollars, 0);
}

test('requests of one call stay within the budget together, also while other calls run', async () => {
  const spent = await spentOf(20_500);
  expect(spent).toBeLessThanOrEqual(20_500);
  expect(spent).toBeGreaterThan(10_000);
});
