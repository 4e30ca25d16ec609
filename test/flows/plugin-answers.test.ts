import { from } from 'rxjs';
import { definePlugin, GatewayError, type GatewayEvent, type Usage } from 'sluice';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const usage: Usage = { input: 100, output: 50, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
let cleared = 0;
let detachedEnded = 0;

/** Answers by itself, for a share of the price that the request names; or goes on when the client has left. */
const answering = definePlugin({
  name: 'answering',
  stage: 'shape',
  setup(_options, tools) {
    tools.adminRoute('DELETE', '/api/answers', (ctx) => {
      if (ctx.query['wrong'] === 'yes') throw new GatewayError('invalid_request', 'That is no color.');
      cleared += 1;
      ctx.body = { cleared };
    });
    tools.adminRoute('GET', '/api/answers', (ctx) => {
      ctx.body = { cleared };
    });
    return async function answers(call, next) {
      const share = call.wire.headers['x-share'];
      if (share === 'detached') {
        const own = tools.detach(call);
        own.call.onEnd(() => {
          detachedEnded += 1;
        });
        const reply = await own.send((view) => next(view.with({ decoded: true })));
        call.onEnd(() => own.end());
        return reply;
      }
      if (share === undefined) return next(call);
      tools.chargeAnswer(call, usage, Number(share));
      const position = { block: 0, choice: 0 };
      return from<GatewayEvent[]>([
        { type: 'head', id: call.id, model: call.model },
        { type: 'text-start', ...position },
        { type: 'text-delta', ...position, text: 'Hi.' },
        { type: 'text-end', ...position },
        { type: 'finish', choice: 0, reason: 'stop' },
        { type: 'usage', usage },
      ]);
    };
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    adminPassword,
    plugins: [answering()],
    prices: { demo: { input: 10, output: 20 } },
    channels: [demo()],
  });
});
afterAll(() => gateway.close());

const answer = (share: string, key: string, most?: number): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-share': share },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }], max_tokens: most }),
  });

async function chat(share: string): Promise<{ total_tokens: number }> {
  const response = await answer(share, gateway.key);
  expect(response.status).toBe(200);
  return ((await response.json()) as { usage: { total_tokens: number } }).usage;
}

describe('a response that a plugin gives by itself', () => {
  test('is charged the share that the plugin names, and recorded under the name of the plugin', async () => {
    const usageLog = openUsageLog(gateway.stores);
    const seen = async () => (await usageLog.page({ channel: 'plugin:answering' }, 100)).records;
    for (const share of ['0', '0.25', '1']) expect((await chat(share)).total_tokens).toBe(150);
    await expect.poll(async () => (await seen()).length).toBe(3);
    const amounts = (await seen()).map(({ input, output, microDollars }) => [input, output, microDollars]);
    // 100 tokens at 10 dollars and 50 at 20 dollars a million.
    expect(amounts.toSorted((a, b) => (a[2] ?? 0) - (b[2] ?? 0))).toEqual([
      [0, 0, 0],
      [100, 50, 500],
      [100, 50, 2000],
    ]);
  });

  test('is paid from what its call has reserved, so that many calls stay within the budget', async () => {
    const amount = 100_000;
    const { record, value } = await gateway.apiKeys.create({
      name: 'budgeted',
      budgets: [{ unit: 'micro-dollar', period: 'total', amount }],
    });
    const usageLog = openUsageLog(gateway.stores);
    let calls = 0;
    let refused = 0;
    // 2,000 are charged each time, and about 2,600 reserved: for a key that calls so often, the worker reserves for several calls at once.
    const caller = async (): Promise<void> => {
      while (refused < 20 && calls < 300) {
        calls += 1;
        const response = await answer('1', value, 50);
        await response.text();
        if (response.status === 429) refused += 1;
      }
    };
    await Promise.all(Array.from({ length: 8 }, caller));
    await expect
      .poll(async () => (await usageLog.page({ keyId: record.id }, 500)).records.length)
      .toBe(calls);
    const { records } = await usageLog.page({ keyId: record.id }, 500);
    const spent = records.reduce((sum, { microDollars = 0 }) => sum + microDollars, 0);
    expect(spent).toBeLessThanOrEqual(amount);
    expect(spent).toBeGreaterThan(amount * 0.9);
  });

  test('reaches its client also from a call with a life of its own, which is recorded once', async () => {
    const usageLog = openUsageLog(gateway.stores);
    const before = (await usageLog.page({ channel: 'demo' }, 100)).records.length;
    expect((await chat('detached')).total_tokens).toBeGreaterThan(0);
    await expect
      .poll(async () => (await usageLog.page({ channel: 'demo' }, 100)).records.length)
      .toBe(before + 1);
    await expect.poll(() => detachedEnded).toBe(1);
  });
});

describe('a route of a plugin for whoever runs the gateway', () => {
  const sendChat = (init: RequestInit = {}, query = ''): Promise<Response> =>
    fetch(`${gateway.url}/api/answers${query}`, init);

  test('is 401 without a session, also with an API key', async () => {
    for (const method of ['GET', 'DELETE'])
      for (const headers of [{}, { authorization: `Bearer ${gateway.key}` }])
        expect((await sendChat({ method, headers })).status).toBe(401);
    expect(cleared).toBe(0);
  });

  test('is 403 for a change without the token of the session, or from another origin', async () => {
    const { cookie, csrfToken } = await logIn(gateway.url);
    expect((await sendChat({ method: 'DELETE', headers: { cookie } })).status).toBe(403);
    const foreign = { cookie, 'x-csrf-token': csrfToken, origin: 'https://elsewhere.example' };
    expect((await sendChat({ method: 'DELETE', headers: foreign })).status).toBe(403);
    expect(cleared).toBe(0);
  });

  test('answers the session, and a change stands in the audit', async () => {
    const admin = await logIn(gateway.url);
    const headers = { cookie: admin.cookie, 'x-csrf-token': admin.csrfToken };
    const changed = await sendChat({ method: 'DELETE', headers });
    expect(changed.headers.get('cache-control')).toBe('no-store');
    expect(await changed.json()).toEqual({ cleared: 1 });
    expect(await (await sendChat({ headers: { cookie: admin.cookie } })).json()).toEqual({ cleared: 1 });
    expect((await sendChat({ method: 'DELETE', headers }, '?wrong=yes')).status).toBe(400);
    const { entries } = await admin.request('listAudit');
    expect(entries.find(({ action }) => action === 'plugin-route')).toMatchObject({
      target: 'DELETE /api/answers',
    });
  });

  test('is 404 where the admin API is off', async () => {
    const { default: admin } = await import('../../plugins/admin/index.ts');
    const { default: dashboard } = await import('../../plugins/dashboard/index.ts');
    const without = await startGateway({
      plugins: [answering(), admin.off(), dashboard.off()],
      channels: [demo()],
    });
    try {
      expect((await fetch(`${without.url}/api/answers`)).status).toBe(404);
    } finally {
      await without.close();
    }
  });
});
