import type { Attributes, Meter } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import type { Catalog } from '../../../core/sdk/index.ts';
import { cut, reply, testPlugins } from '../../../core/sdk/testing/index.ts';
import type { EndedCall } from '../../../plugins/telemetry/call-attributes.ts';
import { Channels } from '../../../plugins/telemetry/channels.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
import { Instruments } from '../../../plugins/telemetry/instruments.ts';
import type { Losses } from '../../../plugins/telemetry/losses.ts';
import { startCollector } from './_collector.ts';

test('models that no channel lists are one series, whatever names clients make up', async () => {
  const collector = await startCollector();
  const tested = await testPlugins(telemetry({ endpoint: collector.url }), {
    channels: { test: ['mini', 'x-*'] },
  });
  for (const model of ['mini', 'x-1', 'x-2', `x-${'long'.repeat(50)}`])
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await tested.run({ model, messages: ['Hi'] });
  await tested.run({ model: 'mini', stream: true }, { reply: reply('Hel', cut()) });
  await tested.close();
  const durations = collector.points.filter(({ metric }) => metric === 'gen_ai.server.request.duration');
  expect(
    durations.map(({ attributes, count }) => [
      attributes['gen_ai.request.model'],
      attributes['error.type'],
      count,
    ]),
  ).toEqual([
    ['mini', undefined, 1],
    ['other', undefined, 3],
    ['mini', expect.any(String), 1],
  ]);
  // Times to tokens are those of calls that went well.
  expect(
    collector.points.filter(({ metric }) => metric.includes('token') && !metric.endsWith('usage')),
  ).toEqual([]);
});

test('of a long list of models two hundred are told apart', () => {
  const names = Array.from({ length: 300 }, (_, index) => `model-${index}`);
  const catalog: Pick<Catalog, 'list' | 'targets'> = {
    targets: () => [],
    list: () => names.map((id) => ({ id, created: 0, ownedBy: 'somebody' })),
  };
  const channels = new Channels(catalog);
  const labels = new Set([...names, ...names].map((name) => channels.label(name)));
  expect(labels.size).toBe(201);
  expect(channels.label('model-0')).toBe('model-0');
  expect(channels.label('model-299')).toBe('other');
  expect(channels.label('unknown')).toBe('other');
});

test('of thousands of combinations of attributes two thousand are told apart', () => {
  const seen = new Map<string, Set<string>>();
  const recorder = (name: string) => ({
    record: (_value: number, attributes: Attributes) =>
      void seen.set(name, (seen.get(name) ?? new Set()).add(JSON.stringify(attributes))),
  });
  const meter = {
    createHistogram: recorder,
    createCounter: () => ({ add: () => {} }),
  } as unknown as Meter;
  const labels = { label: (model: string) => model } as Channels;
  const losses = { observe: () => {} } as unknown as Losses;
  const instruments = new Instruments(meter, labels, losses);
  for (let index = 0; index < 3_000; index += 1)
    instruments.record({
      call: { askedModel: 'm', stream: false },
      outcome: {
        times: { totalMs: 1 },
        usage: { input: 1, output: 1 },
        attempts: [{ channel: `c-${index}`, failure: 'timeout', startMs: 0, endMs: 1 }],
      },
      operation: 'chat',
      provider: 'openai',
      providerOf: () => 'openai',
      channel: `c-${index}`,
      errorType: 'timeout',
    } as unknown as EndedCall);
  for (const [name, combinations] of seen) expect([name, combinations.size < 2_010]).toEqual([name, true]);
  expect(seen.get('gen_ai.server.request.duration')).toContain(
    JSON.stringify({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'other',
      'gen_ai.request.model': 'other',
      'error.type': 'timeout',
    }),
  );
});
