import { describe, expect, test } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { startCollector, type Collector } from './_collector.ts';
import { callWithClient, models, startObserved } from './_gateway.ts';

const model = models['chat-completions'];
/** Short, so that what cannot be exported is given up within a test, and long enough for a receiver of a busy machine. */
const hasty = { timeout: 1_500, metricsInterval: 1_000 };

const chats = async (gateway: TestGateway, count: number): Promise<void> => {
  await Promise.all(
    Array.from({ length: count }, () => callWithClient(gateway, 'chat-completions', model, true)),
  );
};

/** Returns a counter of `GET /metrics`. */
async function counted({ url }: TestGateway, signal: string, reason: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const pattern = `sluice_plugin_telemetry_dropped_total{signal="${signal}",reason="${reason}"} `;
  const line = text.split('\n').find((one) => one.startsWith(pattern));
  return Number(line?.slice(pattern.length) ?? 0);
}

const callsIn = ({ spans }: Collector): number => spans.filter(({ kind }) => kind === 'SERVER').length;

describe('a receiver', () => {
  test('that is not there at the start loses what waited for it, which is counted, and gets what comes later', async () => {
    const port = await freePort();
    const { gateway } = await startObserved({ endpoint: `http://127.0.0.1:${port}`, ...hasty });
    await chats(gateway, 3);
    // A span for each call and each attempt.
    await expect.poll(() => counted(gateway, 'traces', 'export_failed')).toBe(6);
    await expect.poll(() => counted(gateway, 'logs', 'export_failed')).toBe(3);
    expect(gateway.lines.find(({ msg }) => msg === 'telemetry was dropped')).toMatchObject({
      level: 'warn',
      plugin: 'telemetry',
      cause: expect.stringContaining(String(port)),
    });
    const collector = await startCollector({}, port);
    await chats(gateway, 2);
    await collector.waitForSpans(4);
    // The exported metrics tell of the loss, too.
    await expect
      .poll(() => collector.points.filter(({ metric }) => metric === 'sluice.telemetry.dropped').length)
      .toBeGreaterThan(0);
  });

  test('that dies and comes back misses what was made meanwhile alone', async () => {
    const first = await startCollector();
    const { gateway } = await startObserved({ endpoint: first.url, ...hasty });
    await chats(gateway, 2);
    await first.waitForSpans(4);
    await first.kill();
    await chats(gateway, 3);
    await expect.poll(() => counted(gateway, 'traces', 'export_failed')).toBe(6);
    const second = await startCollector({}, first.port);
    await chats(gateway, 2);
    await second.waitForSpans(4);
    expect(callsIn(second)).toBe(2);
  });

  test('that never answers holds no call up, and no more than the queue in memory', async () => {
    const collector = await startCollector({ hangs: true });
    const { gateway } = await startObserved({
      endpoint: collector.url,
      queue: { records: 10 },
      timeout: 60_000,
      signals: { metrics: false, logs: false },
    });
    await chats(gateway, 10);
    await expect.poll(() => collector.got.length).toBe(1);
    await chats(gateway, 30);
    // Ten spans wait or are on their way, the others are gone.
    await expect.poll(() => counted(gateway, 'traces', 'queue_full')).toBe(2 * 40 - 10);
    expect(collector.got).toHaveLength(1);
    // One line at once; the next one in a minute.
    expect(gateway.lines.filter(({ msg }) => msg === 'telemetry was dropped')).toHaveLength(1);
  });

  test.each([400, 401, 404, 500])('that answers %i is not asked again with the same', async (status) => {
    const collector = await startCollector({ status });
    const { gateway } = await startObserved({
      endpoint: collector.url,
      signals: { metrics: false, logs: false },
    });
    await chats(gateway, 2);
    await expect.poll(() => counted(gateway, 'traces', 'export_failed')).toBe(4);
    expect(gateway.lines.find(({ msg }) => msg === 'telemetry was dropped')).toMatchObject({
      cause: `the receiver returned status ${status}`,
    });
    await collector.behave({});
    await chats(gateway, 1);
    await collector.waitForSpans(2);
    expect(collector.spans).toHaveLength(2);
  });

  test.each([
    { status: 503 },
    { status: 429, retryAfter: '1' },
    { status: 429, retryAfter: new Date(Date.now() + 2_000).toUTCString() },
  ])('that asks for patience gets everything once: $status, $retryAfter', async (behaviour) => {
    const collector = await startCollector(behaviour);
    const { gateway } = await startObserved({
      endpoint: collector.url,
      signals: { metrics: false, logs: false },
    });
    await chats(gateway, 3);
    await expect.poll(() => collector.got.length).toBeGreaterThan(0);
    await collector.behave({});
    await chats(gateway, 2);
    await collector.waitForSpans(10);
    expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(10);
    expect(await counted(gateway, 'traces', 'export_failed')).toBe(0);
  });

  test.each(['0', '-1', new Date(0).toUTCString()])(
    'that asks for a pause of no length (%s) gets no more than the usual retries',
    async (retryAfter) => {
      const collector = await startCollector({ status: 429, retryAfter });
      const { gateway } = await startObserved({
        endpoint: collector.url,
        timeout: 1_200,
        signals: { metrics: false, logs: false },
      });
      await chats(gateway, 1);
      await expect.poll(() => counted(gateway, 'traces', 'export_failed')).toBe(2);
      expect(collector.got.length).toBeLessThanOrEqual(4);
    },
  );

  test('that never answers is sent no third export of metrics', async () => {
    const collector = await startCollector({ hangs: true });
    const { gateway } = await startObserved({
      endpoint: collector.url,
      metricsInterval: 1_000,
      timeout: 60_000,
      signals: { traces: false, logs: false },
    });
    await chats(gateway, 1);
    await expect.poll(() => counted(gateway, 'metrics', 'queue_full')).toBeGreaterThan(0);
    expect(collector.got).toHaveLength(2);
  });

  test('that refuses a part of an export has that counted', async () => {
    const body = '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}';
    const collector = await startCollector({ body });
    const { gateway } = await startObserved({
      endpoint: collector.url,
      protocol: 'http/json',
      signals: { metrics: false, logs: false },
    });
    await chats(gateway, 1);
    await expect.poll(() => counted(gateway, 'traces', 'rejected')).toBe(1);
  });
});

describe('exports', () => {
  test.each([
    { protocol: 'http/protobuf', compression: 'gzip' },
    { protocol: 'http/json', compression: 'none' },
    { protocol: 'http/json', compression: 'gzip' },
  ] as const)(
    'are read as $protocol with compression $compression, with the headers that the operator sets',
    async (how) => {
      const collector = await startCollector();
      const headers = { authorization: 'Basic dGVzdDpzZWNyZXQtb2YtdGhlLXJlY2VpdmVy' };
      const { gateway } = await startObserved({
        endpoint: `${collector.url}/`,
        headers,
        metricsInterval: 1_000,
        temporality: 'delta',
        resource: { 'deployment.environment.name': 'test' },
        serviceName: 'gateway-under-test',
        ...how,
      });
      await chats(gateway, 1);
      await collector.waitForSpans(2);
      await expect.poll(() => collector.records.length).toBe(1);
      await expect.poll(() => collector.points.length).toBeGreaterThan(0);
      const call = collector.spans.find(({ kind }) => kind === 'SERVER');
      expect(call).toMatchObject({
        attributes: { 'gen_ai.request.model': model, 'gen_ai.response.finish_reasons': ['stop'] },
        resource: {
          'service.name': 'gateway-under-test',
          'deployment.environment.name': 'test',
          'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
          'telemetry.sdk.language': 'nodejs',
        },
      });
      expect(collector.records[0]).toMatchObject({ traceId: call?.traceId, spanId: call?.spanId });
      expect(new Set(collector.points.map(({ temporality }) => temporality))).toEqual(new Set([1]));
      for (const got of collector.got) expect(got.headers).toMatchObject(headers);
      expect(JSON.stringify(gateway.lines)).not.toContain('dGVzdDpzZWNyZXQ');
    },
  );
});
