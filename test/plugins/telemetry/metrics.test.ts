import { expect, test } from 'vitest';
import type { Catalog } from '../../../core/sdk/index.ts';
import { cut, reply, testPlugins } from '../../../core/sdk/testing/index.ts';
import { Channels } from '../../../plugins/telemetry/channels.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
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
  const catalog: Catalog = {
    serves: () => true,
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
