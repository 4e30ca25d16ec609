import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import openaiChannel from '../../channels/openai.ts';
import { definePlugin, gathered, GatewayError, type Call, type PluginTools } from '../../core/sdk/index.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** Calls that a plugin makes on behalf of those of clients, such as a moderation before a chat. */

/** Calls that met the plugin. */
const met: Call[] = [];
let ended = 0;
let subcall: PluginTools['subcall'] | undefined;

const moderated = definePlugin({
  name: 'moderated',
  stage: 'shape',
  setup(_options, tools) {
    ({ subcall } = tools);
    return async function moderates(call, next) {
      met.push(call);
      const { 'x-tool': toolCost } = call.wire.headers;
      if (toolCost !== undefined) {
        await tools.runTool(call, { name: 'tool', microDollars: Number(toolCost) }, () => Promise.resolve());
        return next(call);
      }
      const chargeTo = call.wire.headers['x-pays'] === 'operator' ? 'operator' : 'caller';
      const outlivesParent = call.wire.headers['x-outlives'] === 'true';
      const judge = tools.subcall(call, {
        operation: 'moderate',
        format: 'moderations',
        body: { model: String(call.wire.headers['x-judge'] ?? 'judge'), input: 'Hi' },
        chargeTo,
        outlivesParent,
      });
      judge.call.onEnd(() => {
        ended += 1;
      });
      if (outlivesParent) {
        judge
          .send()
          .then((reply) => gathered(judge.call, reply))
          .finally(() => judge.end())
          .catch(() => {});
        return next(call);
      }
      try {
        const events = await gathered(judge.call, await judge.send());
        const flagged = events.some((event) => JSON.stringify(event).includes('"flagged":true'));
        if (flagged) throw new GatewayError('forbidden', 'This is not said here.');
      } finally {
        judge.end();
      }
      return next(call);
    };
  },
});

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let usageLog: UsageLog;
let verdict = false;
let fails = 0;
/** Moderations that are answered when the test says so. */
const late: (() => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    if (request.body.includes('"silent"')) return;
    if (request.url.includes('moderations')) {
      if (fails > 0) {
        fails -= 1;
        response.writeHead(503).end('{}');
        return;
      }
      const answer = (): void => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(
          JSON.stringify({
            id: 'modr-1',
            model: 'judge',
            results: [{ flagged: verdict, categories: {}, category_scores: {} }],
            usage: { prompt_tokens: 3, total_tokens: 3 },
          }),
        );
      };
      if (request.body.includes('"late"')) late.push(answer);
      else answer();
      return;
    }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(
        '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
      );
  });
  const models = { chat: 'gpt-4.1', judge: 'omni-moderation-latest', silent: 'silent', late: 'late' };
  const at = (id: string) => openaiChannel({ id, key: 'k', baseUrl: `${upstream.url}/v1`, models });
  gateway = await startGateway({
    plugins: [moderated()],
    channels: [at('one'), at('two')],
    prices: {
      chat: { input: 1, output: 1 },
      judge: { input: 100_000, output: 0 },
      silent: { input: 1, output: 1 },
      late: { input: 100_000, output: 0 },
    },
  });
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

interface SubcallOptions {
  /** The fields of a new key, or the value of one. */
  readonly key?: Partial<ApiKey> | string;
  readonly user?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** A chat, with a key of its own where none is given. `records` waits until that many calls of the key are booked. */
async function chat({ key = {}, user, headers = {}, signal }: SubcallOptions = {}) {
  const created =
    typeof key === 'string' ? undefined : await gateway.apiKeys.create({ name: 'asks', ...key });
  const value = created?.value ?? String(key);
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'Hi' }], user }),
    ...(signal === undefined ? {} : { signal }),
  });
  const recorded = async (keyId: string | undefined, calls: number) => {
    const page = async () =>
      (await usageLog.page({}, 100)).records.filter((one) => one.keyId === keyId).toReversed();
    await expect.poll(async () => (await page()).length).toBeGreaterThanOrEqual(calls);
    return page();
  };
  return { response, value, id: created?.record.id, body: (await response.json()) as object, recorded };
}

describe('a call that a plugin makes for another one', () => {
  test('is recorded under its own id and charged to the key of the client', async () => {
    const { response, id, recorded } = await chat();
    expect(response.status).toBe(200);
    const records = await recorded(id, 2);
    expect(records.map(({ operation, microDollars }) => [operation, microDollars]).toSorted()).toEqual([
      ['chat', 2],
      ['moderate', 300_000],
    ]);
    const [first, second] = records;
    expect(first?.id).not.toBe(second?.id);
    await expect
      .poll(() => gateway.lines.find((line) => line.operation === 'moderate'))
      .toMatchObject({ parent: response.headers.get('x-request-id') });
  });

  test('meets no plugin that shapes calls, and is over with the answer', async () => {
    met.length = 0;
    ended = 0;
    await chat();
    expect(met.map(({ operation, parent }) => [operation, parent])).toEqual([['chat', undefined]]);
    expect(ended).toBe(1);
  });

  test('decides about the call', async () => {
    verdict = true;
    try {
      const { response, body } = await chat();
      expect(response.status).toBe(403);
      expect(body).toMatchObject({ error: { message: 'This is not said here.' } });
    } finally {
      verdict = false;
    }
  });

  test('is paid by nobody where the operator says so', async () => {
    const { id, recorded } = await chat({ headers: { 'x-pays': 'operator' } });
    expect((await recorded(id, 1)).map(({ operation }) => operation)).toEqual(['chat']);
    expect((await recorded(undefined, 1)).at(-1)).toMatchObject({
      operation: 'moderate',
      microDollars: 300_000,
    });
  });

  test('reserves its cost: a budget without room for it refuses the call', async () => {
    const tiny = await chat({
      key: { budgets: [{ unit: 'micro-dollar', period: 'total', amount: 150_000 }] },
    });
    expect(tiny.response.status).toBe(429);
    const moderationCount = upstream.requests.filter(({ url }) => url.includes('moderations')).length;
    await chat({
      key: { budgets: [{ unit: 'micro-dollar', period: 'total', amount: 150_000 }] },
      headers: { 'x-pays': 'operator' },
    });
    expect(upstream.requests.filter(({ url }) => url.includes('moderations'))).toHaveLength(
      moderationCount + 1,
    );
  });

  test('is attributed to the end user of the call', async () => {
    const { id, recorded } = await chat({ key: { tags: ['blue'] }, user: 'ada' });
    expect((await recorded(id, 2)).map(({ endUser, tags }) => [endUser, tags])).toEqual([
      ['ada', ['blue']],
      ['ada', ['blue']],
    ]);
  });

  test('as a run of a tool is reserved and charged by the budget of the end user', async () => {
    const endUserBudget = { unit: 'micro-dollar', period: 'day', amount: 100_000 } as const;
    const headers = { 'x-tool': '50000' };
    const { response, value, id, recorded } = await chat({ key: { endUserBudget }, user: 'ada', headers });
    expect(response.status).toBe(200);
    expect((await recorded(id, 2)).find(({ operation }) => operation === 'tool')).toMatchObject({
      endUser: 'ada',
      microDollars: 50_000,
    });
    // What the chat may come to has room beside what was charged, and the tool has none beside both.
    expect((await chat({ key: value, user: 'ada', headers })).response.status).toBe(429);
    expect((await chat({ key: value, user: 'bob', headers })).response.status).toBe(200);
  });

  test('may use a model that the key does not name, and takes none of its turns', async () => {
    const { response } = await chat({ key: { models: ['chat'], concurrency: 1, requestsPerMinute: 1 } });
    expect(response.status).toBe(200);
  });

  test('goes to another channel when the first one fails', async () => {
    fails = 1;
    const { response, id, recorded } = await chat();
    expect(response.status).toBe(200);
    const records = await recorded(id, 2);
    expect(records.find(({ operation }) => operation === 'moderate')?.attempts).toHaveLength(1);
  });

  test('ends when the client leaves', async () => {
    ended = 0;
    const leaving = new AbortController();
    const before = upstream.requests.length;
    const left = chat({ headers: { 'x-judge': 'silent' }, signal: leaving.signal });
    await expect.poll(() => upstream.requests.length).toBe(before + 1);
    leaving.abort();
    await expect(left).rejects.toThrow('aborted');
    await expect.poll(() => ended).toBe(1);
  });

  test('goes on when its parent has ended where the plugin says so, and is charged and recorded then', async () => {
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 100_000_000 }] as const;
    const { response, id, recorded } = await chat({
      key: { budgets: [...budgets] },
      headers: { 'x-judge': 'late', 'x-outlives': 'true' },
    });
    expect(response.status).toBe(200);
    expect((await recorded(id, 1)).map(({ operation }) => operation)).toEqual(['chat']);
    await expect.poll(() => late.length).toBe(1);
    late.pop()?.();
    const records = await recorded(id, 2);
    // The list is ordered by when calls began: the clock may have stood still between the two.
    expect(records.find(({ operation }) => operation === 'moderate')).toMatchObject({
      status: 200,
      microDollars: 300_000,
    });
  });

  test('is refused where the format has no such operation, with the formats that have it', async () => {
    await chat();
    const [parent] = met;
    if (parent === undefined) throw new Error('No call met the plugin.');
    const make = (format: string, body = {}) =>
      subcall?.(parent, { operation: 'moderate', format, body: { model: 'judge', input: 'Hi', ...body } });
    expect(() => make('messages')).toThrow(
      'The format "messages" has no operation "moderate". Use one of "moderations".',
    );
    expect(() => make('moderations', { input: 7 })).toThrow(GatewayError);
  });
});
