import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { definePlugin } from 'sluice';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { createRequestAddress } from '../../core/front/client-address.ts';
import type { Gathered } from '../../core/state/links/peers.ts';
import { createAccess } from '../../plugins/metrics/access.ts';
import metrics from '../../plugins/metrics/index.ts';
import { measured, textOf, totalsOf } from '../../plugins/metrics/scrape.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';

/** Series of a text by name and labels as they stand there. */
async function scrape(
  gateway: TestGateway,
  headers: Record<string, string> = {},
): Promise<Map<string, number>> {
  const response = await fetch(`${gateway.url}/metrics`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
  const found = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, series = '', value = ''] = /^(.*) (\S+)$/.exec(line) ?? [];
    expect(found.has(series)).toBe(false);
    found.set(series, Number(value));
  }
  return found;
}

async function chat(
  gateway: TestGateway,
  model: string,
  more: object = {},
  key = gateway.key,
): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more }),
  });
  await response.text();
  return response.status;
}

const calls = (labels: Record<string, string>): string => `sluice_calls_total{${listed(labels)}}`;
const listed = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');

test('a scrape tells of calls, tokens, money, failures, channels and this process', async () => {
  const upstream = await startUpstream((_request, response) => void response.writeHead(500).end());
  onTestFinished(() => upstream.close());
  const gateway = await startGateway({
    prices: { demo: { input: 1000, output: 1000 } },
    channels: [
      demo(),
      openai({ id: 'broken', keys: ['a', 'b'], baseUrl: upstream.url, models: ['broken', 'gpt-*'] }),
    ],
  });
  onTestFinished(() => gateway.close());
  expect(await chat(gateway, 'demo')).toBe(200);
  expect(await chat(gateway, 'demo', { stream: true })).toBe(200);
  expect(await chat(gateway, 'broken')).toBe(502);
  expect(await chat(gateway, 'demo', {}, 'sk-nobody')).toBe(401);

  const ok = calls({
    operation: 'chat',
    format: 'chat-completions',
    channel: 'demo',
    model: 'demo',
    status: '2xx',
    code: '',
  });
  await expect.poll(async () => (await scrape(gateway)).get(ok)).toBe(2);
  const found = await scrape(gateway);
  const refused = [...found].filter(([name]) => name.includes('status="4xx",code="invalid_api_key"'));
  expect(refused.map(([, value]) => value)).toEqual([1]);
  expect(
    [...found].filter(([name]) => name.includes('model="broken",status="5xx",code="upstream_error"')),
  ).toHaveLength(1);
  expect(found.get(`sluice_call_duration_seconds_count{operation="chat",channel="demo"}`)).toBe(2);
  expect(found.get(`sluice_first_token_seconds_count{operation="chat",channel="demo"}`)).toBe(2);
  expect(found.get('sluice_tokens_total{kind="input",channel="demo",model="demo"}')).toBeGreaterThan(0);
  expect(found.get('sluice_tokens_total{kind="output",channel="demo",model="demo"}')).toBeGreaterThan(0);
  expect(found.get('sluice_cost_dollars_total{channel="demo",model="demo"}')).toBeGreaterThan(0);
  expect(found.get('sluice_attempts_failed_total{channel="broken",code="upstream_error"}')).toBeGreaterThan(
    0,
  );
  expect(found.get('sluice_channel_standing{channel="demo",key="",standing="up"}')).toBe(1);
  expect(
    [...found.keys()].filter((name) => name.startsWith('sluice_channel_standing{channel="broken"')),
  ).toHaveLength(8);
  expect(found.get('sluice_channel_enabled{channel="broken"}')).toBe(1);
  expect(found.get('sluice_shared_store_up')).toBe(1);
  expect(found.get('sluice_kept_overdue_seconds{kept="spending"}')).toBe(0);
  expect(found.get('sluice_running_calls')).toBe(0);
  expect(found.has('sluice_unsettled_calls')).toBe(true);
  expect(found.has('sluice_api_keys_held')).toBe(true);
  expect(found.get('sluice_open_sockets')).toBeGreaterThan(0);
  const families = new Set([...found.keys()].map((series) => series.replace(/\{.*/s, '')));
  expect([...families]).toEqual(
    expect.arrayContaining([
      'process_cpu_user_seconds_total',
      'nodejs_eventloop_lag_seconds',
      'nodejs_version_info',
    ]),
  );
  const text = [...found.keys()].join('\n');
  for (const secret of [gateway.key, upstream.url, 'sk-nobody']) expect(text).not.toContain(secret);
});

test('strangers who name any model make no new series', async () => {
  const upstream = await startUpstream((_request, response) => void response.writeHead(400).end('{}'));
  onTestFinished(() => upstream.close());
  const gateway = await startGateway({
    channels: [openai({ key: 'a', baseUrl: upstream.url, models: ['gpt-*', 'named'] })],
  });
  onTestFinished(() => gateway.close());
  await Promise.all(Array.from({ length: 30 }, (_, index) => chat(gateway, `gpt-${index}`)));
  await Promise.all(Array.from({ length: 30 }, (_, index) => chat(gateway, `nobody-${index}"\\`)));
  await chat(gateway, 'named');
  const models = async (): Promise<Map<string, number>> => {
    const sums = new Map<string, number>();
    for (const [name, value] of await scrape(gateway)) {
      const model = /^sluice_calls_total\{.*model="([^"]*)"/.exec(name)?.[1];
      if (model !== undefined) sums.set(model, (sums.get(model) ?? 0) + value);
    }
    return sums;
  };
  await expect.poll(models).toEqual(
    new Map([
      ['other', 60],
      ['named', 1],
    ]),
  );
});

test('calls that run are seen while they run, and one that its client left is counted so', async () => {
  const upstream = await startUpstream(() => {});
  onTestFinished(() => upstream.close());
  const gateway = await startGateway({
    channels: [openai({ key: 'a', baseUrl: upstream.url, models: ['silent'] })],
  });
  onTestFinished(() => gateway.close());
  const leave = new AbortController();
  const left = fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'silent', messages: [{ role: 'user', content: 'hi' }] }),
    signal: leave.signal,
  });
  await expect.poll(async () => (await scrape(gateway)).get('sluice_running_calls')).toBe(1);
  leave.abort();
  await expect(left).rejects.toThrow(/abort/);
  await expect.poll(async () => (await scrape(gateway)).get('sluice_running_calls')).toBe(0);
  const found = await scrape(gateway);
  expect([...found.keys()].filter((name) => name.includes('status="left"'))).toHaveLength(1);
});

describe('several processes are one', () => {
  /** Metrics of a process that has measured so much. */
  const registryOf = (count: number, lag: number): Registry => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: 'calls', help: 'h', labelNames: ['code'], registers }).inc({ code: 'a"\n' }, count);
    new Histogram({ name: 'times', help: 'h', buckets: [1, 5], registers }).observe(count);
    new Gauge({ name: 'runs', help: 'h', registers }).set(count);
    new Gauge({ name: 'lag', help: 'h', registers, aggregator: 'max' }).set(lag);
    new Gauge({ name: 'began', help: 'h', registers, aggregator: 'omit' }).set(1_000 + lag);
    new Gauge({ name: 'unknown', help: 'h', registers }).set(Number.NaN);
    return registry;
  };
  const tellingOf = (count: number, lag: number): ReturnType<typeof measured> =>
    measured([registryOf(count, lag)]);

  test('a worker that ends leaves the same totals behind that it would report', async () => {
    const registries = [registryOf(3, 0.5)];
    const { totals = {} } = await measured(registries);
    expect(Object.keys(totals)).toContain('["calls","calls",{"code":"a\\"\\n"}]');
    expect(await totalsOf(registries)).toEqual(totals);
  });

  test('counters and histograms are added up, gauges as each of them wants; who is silent is told', async () => {
    const answers = [await tellingOf(3, 0.5), await tellingOf(4, 0.25)];
    const totals: Record<string, number> = {};
    for (const answer of answers)
      for (const [name, total] of Object.entries(answer.totals ?? {}))
        totals[name] = (totals[name] ?? 0) + total;
    const text = await textOf(
      JSON.parse(
        JSON.stringify({
          answers: answers.map(({ value }, from) => ({ from, value })),
          silent: [7],
          totals,
        }),
      ) as Gathered,
    );
    for (const line of [
      '# TYPE calls counter',
      String.raw`calls{code="a\"\n"} 7`,
      'times_bucket{le="1"} 0',
      'times_bucket{le="5"} 2',
      'times_bucket{le="+Inf"} 2',
      'times_sum 7',
      'times_count 2',
      'runs 7',
      'lag 0.5',
      'began 1000.25',
      'sluice_workers{state="answered"} 2',
      'sluice_workers{state="silent"} 1',
    ])
      expect(text.split('\n')).toContain(line);
  });

  test('what another version of the code says is passed over', async () => {
    const { value, totals } = await tellingOf(3, 0.5);
    const odd = [undefined, null, 'text', { counted: 1 }, { counted: [], gauges: [{ name: 'lag' }] }];
    const text = await textOf({
      answers: [...odd, value].map((one, from) => ({ from, value: one })),
      silent: [],
      totals: { ...totals, 'no json': 1, '["calls"]': 2, '["gone","gone",{}]': 3, '[1,2,3]': 4 },
    });
    expect(text).toContain('runs 3');
    expect(text).toContain('sluice_workers{state="answered"} 1');
    expect(text).toContain('sluice_workers{state="silent"} 5');
    expect(text).not.toContain('gone');
  });
});

describe('who may read them', () => {
  const asking = (remoteAddress: string, headers: IncomingMessage['headers'] = {}): IncomingMessage =>
    ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;

  test.each(['127.0.0.1', '::1', '::ffff:10.1.2.3', '172.20.0.3', '192.168.1.1', 'fd00::7', '169.254.1.1'])(
    '%s may',
    (address) => {
      expect(() => createAccess(undefined, createRequestAddress([]))(asking(address))).not.toThrow();
    },
  );

  test.each(['203.0.113.9', '2001:db8::1', '172.32.0.1', ''])('%s may not', (address) => {
    expect(() => createAccess(undefined, createRequestAddress([]))(asking(address))).toThrow(
      /private IP addresses/,
    );
  });

  test('somebody behind a proxy is who the proxy says, where it is trusted, and nobody where it is not', () => {
    const headers = { 'x-forwarded-for': '10.0.0.7' };
    expect(() => createAccess(undefined, createRequestAddress([]))(asking('127.0.0.1', headers))).toThrow(
      /private IP addresses/,
    );
    expect(() =>
      createAccess(undefined, createRequestAddress([]))(asking('127.0.0.1', { via: '1.1 proxy' })),
    ).toThrow(/private IP addresses/);
    const access = createAccess(undefined, createRequestAddress(['127.0.0.1']));
    expect(() => access(asking('127.0.0.1', headers))).not.toThrow();
    expect(() => access(asking('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' }))).toThrow(
      /private IP addresses/,
    );
    expect(() => access(asking('10.9.9.9', headers))).toThrow(/private IP addresses/);
  });

  test('with a token only who sends it, from wherever', () => {
    const access = createAccess('a-token-that-is-long', createRequestAddress([]));
    expect(() =>
      access(asking('203.0.113.9', { authorization: 'Bearer a-token-that-is-long' })),
    ).not.toThrow();
    expect(() =>
      access(asking('203.0.113.9', { authorization: 'bearer  a-token-that-is-long' })),
    ).not.toThrow();
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer a-token-that-is-lonG',
      'Basic a-token-that-is-long',
    ])
      expect(() => access(asking('127.0.0.1', authorization === undefined ? {} : { authorization }))).toThrow(
        /token/,
      );
  });

  test('a refusal is a status and a sentence, and the token is never shown', async () => {
    const token = 'metrics-secret-0123456789';
    const gateway = await startGateway({ channels: [demo()], plugins: [metrics({ token })] });
    onTestFinished(() => gateway.close());
    const refused = await fetch(`${gateway.url}/metrics`);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    expect(await refused.text()).not.toContain(token);
    expect((await scrape(gateway, { authorization: `Bearer ${token}` })).size).toBeGreaterThan(20);
    expect(JSON.stringify(gateway.lines)).not.toContain(token);
  });

  test('a request through a proxy that nobody trusts is refused', async () => {
    const gateway = await startGateway({ channels: [demo()] });
    onTestFinished(() => gateway.close());
    const status = await new Promise<number | undefined>((resolve, reject) => {
      send(`${gateway.url}/metrics`, { headers: { 'x-forwarded-for': '127.0.0.1' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  test('switched off, there is nothing', async () => {
    const gateway = await startGateway({ channels: [demo()], plugins: [metrics({ enabled: false })] });
    onTestFinished(() => gateway.close());
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
    expect(await chat(gateway, 'demo')).toBe(200);
  });
});

test('counters of plugins are published under their names, each with at most 100 series', async () => {
  const counting = definePlugin({
    name: 'counting-words',
    stage: 'shape',
    setup(_options, { metrics: own }) {
      const words = own.counter('words', 'Words by colour.', ['colour']);
      const quiet = own.counter('quiet', 'Nothing yet.');
      return async function countingWords(call, next) {
        for (let at = 0; at < 150; at += 1) words.add({ colour: `c${at}` }, 2);
        expect(() => quiet.add({}, -1)).toThrow('cannot be raised');
        return next(call);
      };
    },
  });
  const gateway = await startGateway({ channels: [demo()], plugins: [counting()] });
  onTestFinished(() => gateway.close());
  await chat(gateway, 'demo');
  await chat(gateway, 'demo');
  const found = await scrape(gateway);
  expect(found.get('sluice_plugin_counting_words_words_total{colour="c7"}')).toBe(4);
  expect(found.get('sluice_plugin_counting_words_words_total{colour="c120"}')).toBeUndefined();
  expect(found.get('sluice_plugin_counting_words_words_total{colour="other"}')).toBe(200);
});

test('a counter whose name is wrong or taken stops the start', async () => {
  const named = (names: readonly string[]) =>
    definePlugin({
      name: 'counting',
      stage: 'shape',
      setup(_options, { metrics: own }) {
        for (const name of names) own.counter(name, 'Something.');
        return (call, next) => next(call);
      },
    });
  for (const names of [['a', 'a'], ['Bad name']])
    await expect(startGateway({ channels: [demo()], plugins: [named(names)()] })).rejects.toThrow('counter');
});
