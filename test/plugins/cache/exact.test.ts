import { ended, fail, reply, testPlugins, text, toolCall, virtualClock } from 'sluice/testing';
import { GatewayError } from 'sluice';
import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import cache from '../../../plugins/cache/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import openai from '../../../channels/openai.ts';
import { adminPassword, logIn } from '../admin/_client.ts';
import { startProvider, usual } from './_provider.ts';
import { chat, post, started } from './_started.ts';

/** Plugins under test, closed in the end. */
async function tested(options: Parameters<typeof cache>[0] = {}) {
  const plugins = await testPlugins(cache(options));
  onTestFinished(() => plugins.close());
  return plugins;
}

const hit = (headers: Readonly<Record<string, string>>): string | undefined => headers['x-sluice-cache'];

describe('what is kept', () => {
  test('the second of two equal requests is a hit, with the age of the response', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const plugins = await tested({ ttl: 60 });
    const first = await plugins.run('What is new?', { reply: 'Nothing.' });
    expect([hit(first.headers), first.headers['age']]).toEqual(['miss', undefined]);
    await clock.advance(10_500);
    const second = await plugins.run('What is new?', { reply: 'Something.' });
    expect([second.text, hit(second.headers), second.headers['age']]).toEqual(['Nothing.', 'hit', '10']);
    expect(second.sent).toEqual([]);
    await clock.advance(50_000);
    const third = await plugins.run('What is new?', { reply: 'Something.' });
    expect([third.text, hit(third.headers)]).toEqual(['Something.', 'miss']);
  });

  test('responses that call tools are kept only where the operator says so', async () => {
    for (const toolCalls of [false, true]) {
      const plugins = await tested({ toolCalls });
      const call = reply('Let me see.', toolCall('weather', { city: 'Oslo' }));
      await plugins.run('Weather?', { reply: call });
      const again = await plugins.run('Weather?', { reply: call });
      expect(hit(again.headers)).toBe(toolCalls ? 'hit' : 'miss');
      expect(again.body).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] });
    }
  });

  test.each([
    ['length', { length: true }, 'hit'],
    ['length', { length: false }, 'miss'],
    ['content-filter', {}, 'miss'],
    ['content-filter', { refusals: true }, 'hit'],
    ['refusal', {}, 'miss'],
    ['other', { refusals: true }, 'miss'],
  ] as const)('a response that ended with %s under %j is a %s', async (finish, options, expected) => {
    const plugins = await tested(options);
    await plugins.run('Go.', { reply: ended({ finish }, 'A long story') });
    expect(hit((await plugins.run('Go.', { reply: ended({ finish }, 'A long story') })).headers)).toBe(
      expected,
    );
  });

  test('errors and empty responses are not kept', async () => {
    const plugins = await tested();
    const error = new GatewayError('upstream_error', 'No.', { origin: 'upstream' });
    expect((await plugins.run('Go.', { reply: reply(fail(error)) })).status).toBe(502);
    await plugins.run('Go.', { reply: ended({ finish: 'stop' }) });
    expect((await plugins.run('Go.', { reply: 'Well.' })).text).toBe('Well.');
  });

  test('a response beyond maxEntryBytes reaches its client whole, and is not kept', async () => {
    const plugins = await tested({ maxEntryBytes: 1_024 });
    const long = 'word '.repeat(1_000);
    for (let round = 0; round < 2; round += 1) {
      const { text: words, headers } = await plugins.run('Go.', { reply: reply(text(long, long, long)) });
      expect([words, hit(headers)]).toEqual([long.repeat(3), 'miss']);
    }
  });

  test('the oldest goes where memory is full', async () => {
    const plugins = await tested({ memoryBytes: 6_000, databaseEntries: 0 });
    for (const question of ['one', 'two', 'three', 'four'])
      await plugins.run(question, { reply: 'x'.repeat(1_500) });
    expect(hit((await plugins.run('four', { reply: 'y' })).headers)).toBe('hit');
    expect(hit((await plugins.run('one', { reply: 'y' })).headers)).toBe('miss');
  });

  test('a worker that has nothing in memory finds it in the database', async () => {
    const one = await tested();
    await one.run('What is new?', { reply: 'Nothing.' });
    const other = await testPlugins(cache(), { tools: { stores: one.tools.stores } });
    onTestFinished(() => other.close());
    expect(
      await eventually(
        async () => hit((await other.run('What is new?', { reply: 'Nothing.' })).headers) === 'hit',
      ),
    ).toBe(true);
  });
});

describe('what is not cached', () => {
  const question = [{ role: 'user', content: 'Go.' }];
  test.each([
    ['several answers', { n: 2 }],
    ['a search of the provider', { web_search_options: {} }],
    ['an unsafe number', { seed: 2 ** 60 }],
    [
      'a file by its id',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
    ],
    ['sound', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
  ])('a request with %s goes to its provider each time, without a header', async (_what, more) => {
    const plugins = await tested();
    const body = { model: 'm', messages: question, ...more };
    for (let round = 0; round < 2; round += 1) {
      const { headers, sent } = await plugins.run({ body }, { reply: 'Well.' });
      expect([hit(headers), sent.length]).toEqual([undefined, 1]);
    }
  });

  test('requests hotter than maxTemperature, and those that name no temperature', async () => {
    const plugins = await tested({ maxTemperature: 0 });
    for (const [temperature, expected] of [
      [0, 'miss'],
      [0, 'hit'],
      [0.1, undefined],
      [undefined, undefined],
    ] as const) {
      const settings = temperature === undefined ? {} : { temperature };
      expect(hit((await plugins.run({ messages: ['Go.'], settings })).headers)).toBe(expected);
    }
  });

  test('background responses and those that go on at the provider', async () => {
    const plugins = await tested();
    for (const more of [
      { background: true },
      { previous_response_id: 'resp_1' },
      { conversation: 'conv_1' },
    ]) {
      const body = { model: 'm', input: 'Go.', ...more };
      expect(hit((await plugins.run({ format: 'responses', body })).headers)).toBeUndefined();
    }
  });
});

describe('cache-control of a request', () => {
  test('no-cache makes a new response, which is kept', async () => {
    const plugins = await tested();
    await plugins.run('Go.', { reply: 'One.' });
    const headers = { 'cache-control': 'No-Cache' };
    const fresh = await plugins.run({ messages: ['Go.'], headers }, { reply: 'Two.' });
    expect([fresh.text, hit(fresh.headers)]).toEqual(['Two.', 'miss']);
    expect((await plugins.run('Go.', { reply: 'Three.' })).text).toBe('Two.');
  });

  test('no-store gives nothing that is kept, and keeps nothing', async () => {
    const plugins = await tested();
    const headers = { 'cache-control': 'no-store' };
    await plugins.run({ messages: ['Go.'], headers }, { reply: 'One.' });
    expect((await plugins.run('Go.', { reply: 'Two.' })).text).toBe('Two.');
    expect((await plugins.run({ messages: ['Go.'], headers }, { reply: 'Three.' })).text).toBe('Three.');
  });

  test('max-age takes a response that is young enough', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const plugins = await tested();
    await plugins.run('Go.', { reply: 'One.' });
    await clock.advance(30_000);
    const withMaxAge = (age: number) => ({
      messages: ['Go.'],
      headers: { 'cache-control': `max-age=${age}` },
    });
    expect((await plugins.run(withMaxAge(60), { reply: 'Two.' })).text).toBe('One.');
    expect((await plugins.run(withMaxAge(20), { reply: 'Three.' })).text).toBe('Three.');
  });

  test('only-if-cached is 504 where nothing is kept', async () => {
    const plugins = await tested();
    const headers = { 'cache-control': 'only-if-cached' };
    for (const format of ['chat-completions', 'responses', 'messages', 'generate-content']) {
      const missing = await plugins.run({ messages: ['Go.'], format, headers });
      expect([missing.status, missing.error?.code, missing.sent.length]).toEqual([504, 'not_cached', 0]);
    }
    await plugins.run('Go.', { reply: 'One.' });
    expect((await plugins.run({ messages: ['Go.'], headers })).text).toBe('One.');
  });
});

describe('stale responses', () => {
  test('stale-while-revalidate gives the old one at once, and has a new one made once', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const plugins = await tested({ ttl: 10, staleWhileRevalidate: 100 });
    await plugins.run('Go.', { reply: 'Old.' });
    await clock.advance(11_000);
    const stale = await plugins.run('Go.', { reply: 'New.' });
    expect([stale.text, hit(stale.headers)]).toEqual(['Old.', 'stale']);
    const fresh = await plugins.run('Go.', { reply: 'Newer.' });
    expect([fresh.text, hit(fresh.headers), fresh.sent.length]).toEqual(['New.', 'hit', 0]);
    await clock.advance(111_000);
    expect((await plugins.run('Go.', { reply: 'Newest.' })).text).toBe('Newest.');
  });

  test('stale-if-error gives the old one where the provider fails, and not where the request is wrong', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const plugins = await tested({ ttl: 10, staleIfError: 100 });
    await plugins.run('Go.', { reply: 'Old.' });
    await clock.advance(11_000);
    const down = reply(fail(new GatewayError('upstream_error', 'No.', { origin: 'upstream' })));
    const stale = await plugins.run('Go.', { reply: down });
    expect([stale.text, hit(stale.headers), stale.headers['age']]).toEqual(['Old.', 'stale', '11']);
    const wrong = reply(
      fail(new GatewayError('invalid_request', 'No.', { origin: 'upstream', retryable: false })),
    );
    expect((await plugins.run('Go.', { reply: wrong })).status).toBe(400);
    await clock.advance(100_000);
    expect((await plugins.run('Go.', { reply: down })).status).toBe(502);
  });
});

describe('scopes', () => {
  const callOfKey = (id: string, note?: string) => ({
    messages: ['Go.'],
    key: { id, ...(note === undefined ? {} : { note }) },
  });

  test('keys do not share responses by default', async () => {
    const plugins = await tested();
    await plugins.run(callOfKey('key_a'), { reply: 'For a.' });
    expect((await plugins.run(callOfKey('key_b'), { reply: 'For b.' })).text).toBe('For b.');
    expect((await plugins.run(callOfKey('key_a'), { reply: 'Again.' })).text).toBe('For a.');
  });

  test('keys share them where the operator says so', async () => {
    const plugins = await tested({ scope: 'shared' });
    await plugins.run(callOfKey('key_a'), { reply: 'For all.' });
    expect((await plugins.run(callOfKey('key_b'), { reply: 'For b.' })).text).toBe('For all.');
  });

  test('a function makes groups, and a key without one is alone', async () => {
    const plugins = await tested({ scope: (key) => key.note });
    await plugins.run(callOfKey('key_a', 'blue'), { reply: 'For blue.' });
    expect((await plugins.run(callOfKey('key_b', 'blue'), { reply: 'Other.' })).text).toBe('For blue.');
    expect((await plugins.run(callOfKey('key_c', 'red'), { reply: 'For red.' })).text).toBe('For red.');
    await plugins.run(callOfKey('key_d'), { reply: 'For d.' });
    expect((await plugins.run(callOfKey('key_e'), { reply: 'For e.' })).text).toBe('For e.');
    // A group cannot be named like a key.
    expect((await plugins.run(callOfKey('key_f', 'key_d'), { reply: 'For f.' })).text).toBe('For f.');
  });

  test('a key that may not ask for the model gets no hit', async () => {
    const { gateway } = await started({ scope: 'shared' });
    expect((await chat(gateway)).cache).toBe('miss');
    const { value } = await gateway.apiKeys.create({ name: 'other', models: ['other'] });
    expect((await chat({ ...gateway, key: value })).status).toBe(403);
    const { value: allowed } = await gateway.apiKeys.create({ name: 'allowed', models: ['m'] });
    expect((await chat({ ...gateway, key: allowed })).cache).toBe('hit');
  });
});

describe('what a hit costs', () => {
  test.each([
    ['nothing', 0, 0],
    [0.5, 19 / 2, 100],
    ['full', 19, 200],
  ] as const)('charge %s', async (charge, tokens, microDollars) => {
    const { gateway } = await started({ charge }, () => usual(), { prices: { m: { input: 5, output: 20 } } });
    const usageLog = openUsageLog(gateway.stores);
    const { id, value } = await gateway.apiKeys
      .create({ name: 'paying', budgets: [{ unit: 'token', period: 'total', amount: 1_000_000 }] })
      .then(({ record, value: secret }) => ({ id: record.id, value: secret }));
    await chat({ ...gateway, key: value });
    expect((await chat({ ...gateway, key: value })).cache).toBe('hit');
    const records = async () => (await usageLog.page({ keyId: id }, 10)).records;
    await eventually(async () => (await records()).length === 2);
    const record = (await records()).find(({ channel }) => channel === 'plugin:cache');
    expect(record?.microDollars).toBe(microDollars);
    expect((record?.input ?? 0) + (record?.output ?? 0)).toBe(charge === 'nothing' ? 0 : 19);
    expect(tokens).toBeLessThanOrEqual(19);
  });

  test('calls that joined are charged like hits, the one that asked pays for the request', async () => {
    const release = Promise.withResolvers<void>();
    const { gateway, provider } = await started(
      { charge: 'nothing' },
      async () => {
        await release.promise;
        return usual();
      },
      { prices: { m: { input: 5, output: 20 } } },
    );
    const usageLog = openUsageLog(gateway.stores);
    const calls = [chat(gateway), chat(gateway), chat(gateway)];
    await eventually(async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return metrics.includes('\nsluice_running_calls 3\n');
    });
    release.resolve();
    await Promise.all(calls);
    expect(provider.requests).toHaveLength(1);
    const records = async () => (await usageLog.page({}, 10)).records;
    await eventually(async () => (await records()).length === 3);
    expect((await records()).map(({ channel }) => channel).toSorted()).toEqual([
      'plugin:cache',
      'plugin:cache',
      'up',
    ]);
    expect((await records()).reduce((sum, { microDollars = 0 }) => sum + microDollars, 0)).toBe(200);
  });
});

describe('other operations', () => {
  test('embeddings, reranks and moderations are kept whole, under the id of each call', async () => {
    const upstream = await startUpstream(({ url }, response) => {
      const body = url.includes('embeddings')
        ? {
            object: 'list',
            model: 'm',
            data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
            usage: { prompt_tokens: 3, total_tokens: 3 },
          }
        : { id: 'modr-1', model: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    onTestFinished(() => upstream.close());
    const gateway = await startGateway({
      plugins: [cache()],
      channels: [openai({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['m'] }), demo()],
    });
    onTestFinished(() => gateway.close());
    for (const [path, body] of [
      ['/v1/embeddings', { model: 'm', input: 'Hello' }],
      ['/v1/moderations', { model: 'm', input: 'Hello' }],
    ] as const) {
      const first = await post(gateway, path, body);
      const second = await post(gateway, path, body);
      expect([first.status, first.cache, second.cache]).toEqual([200, 'miss', 'hit']);
      const [one, two] = [first, second].map((got) => JSON.parse(got.body) as Record<string, unknown>);
      expect({ ...two, id: '' }).toEqual({ ...one, id: '' });
      expect((await post(gateway, path, { ...body, input: 'Goodbye' })).cache).toBe('miss');
    }
    expect(upstream.requests).toHaveLength(4);
  });
});

describe('when the database fails', () => {
  test('memory goes on, misses ask the provider, and the log says so once', async () => {
    const plugins = await tested();
    const broken = () => Promise.reject(new Error('the disk is gone'));
    const { stores } = plugins.tools;
    const failing = await testPlugins(cache(), {
      tools: {
        stores: {
          ...stores,
          namespace: () => ({ get: broken, set: broken, delete: broken, clear: broken }) as never,
        },
      },
    });
    onTestFinished(() => failing.close());
    for (const question of ['one', 'two'])
      expect(hit((await failing.run(question, { reply: 'Well.' })).headers)).toBe('miss');
    expect(hit((await failing.run('one', { reply: 'Well.' })).headers)).toBe('hit');
    await eventually(
      () => failing.lines.filter(({ msg }) => String(msg).includes('cached responses')).length === 1,
    );
  });
});

describe('deleting what is kept', () => {
  test('the operator deletes everything, or what one key has', async () => {
    const { gateway } = await started({}, undefined, { adminPassword });
    const other = await gateway.apiKeys.create({ name: 'other' });
    const both = [gateway, { ...gateway, key: other.value }];
    for (const one of both) expect((await chat(one)).cache).toBe('miss');
    for (const one of both) expect((await chat(one)).cache).toBe('hit');
    const admin = await logIn(gateway.url);
    const purge = async (query: string): Promise<Response> =>
      fetch(`${gateway.url}/api/cache${query}`, {
        method: 'DELETE',
        headers: { cookie: admin.cookie, 'x-csrf-token': admin.csrfToken },
      });
    const response = await purge(`?key=${other.record.id}`);
    expect(await response.json()).toEqual({ purged: `key:${other.record.id}`, deleted: 1 });
    expect(await Promise.all(both.map(async (one) => (await chat(one)).cache))).toEqual(['hit', 'miss']);
    expect((await purge('')).status).toBe(200);
    expect(await Promise.all(both.map(async (one) => (await chat(one)).cache))).toEqual(['miss', 'miss']);
    expect((await purge('?key=a&group=b')).status).toBe(400);
    expect((await purge('?keys=a')).status).toBe(400);
    expect((await fetch(`${gateway.url}/api/cache`, { method: 'DELETE' })).status).toBe(401);
  });
});

test('hits are streamed in small pieces at a set pace', async () => {
  const plugins = await tested({ pace: 100 });
  await plugins.run('Go.', { reply: 'Twelve chars' });
  const { events, text: words } = await plugins.run({ messages: ['Go.'], stream: true });
  expect(words).toBe('Twelve chars');
  expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(3);
});

test('what a plugin before the cache masks stays masked in what is kept', async () => {
  const { definePlugin } = await import('sluice');
  const masking = definePlugin({
    name: 'masking',
    stage: 'shape',
    before: ['cache'],
    setup: () => (call, next) =>
      next(call.with({ messages: [{ role: 'user', content: [{ type: 'text', text: 'masked' }] }] })),
  });
  const plugins = await testPlugins([cache(), masking()]);
  onTestFinished(() => plugins.close());
  await plugins.run('secret one', { reply: (sent) => `You said ${sent.text}.` });
  const second = await plugins.run('secret two', { reply: 'Other.' });
  expect([second.text, hit(second.headers)]).toEqual(['You said masked.', 'hit']);
});

test('the metrics tell hits from misses', async () => {
  const { gateway } = await started();
  await chat(gateway);
  await chat(gateway);
  await chat(gateway, { n: 2 });
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toContain('sluice_plugin_cache_calls_total{result="miss",reason=""} 1');
  expect(metrics).toContain('sluice_plugin_cache_calls_total{result="hit",reason=""} 1');
  expect(metrics).toContain('sluice_plugin_cache_calls_total{result="bypass",reason="choices"} 1');
});

test('over a channel in another format the losses of the first call are told again', async () => {
  const provider = await startProvider('messages');
  onTestFinished(() => provider.close());
  const gateway = await startGateway({ plugins: [cache()], channels: [provider.channel] });
  onTestFinished(() => gateway.close());
  const first = await chat(gateway, { logit_bias: { '1': 2 } });
  const second = await chat(gateway, { logit_bias: { '1': 2 } });
  expect(first.headers.get('x-sluice-loss')).toContain('logit_bias');
  expect([second.cache, second.headers.get('x-sluice-loss')]).toEqual([
    'hit',
    first.headers.get('x-sluice-loss'),
  ]);
  // Whoever takes no loss does not get the response of somebody who does.
  expect((await chat(gateway, { logit_bias: { '1': 2 } }, { 'x-sluice-strict': 'true' })).status).toBe(400);
});
