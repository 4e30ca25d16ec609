import { fail, pause, reply, testPlugins, virtualClock, type TestedPlugins } from 'sluice/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { Rates } from '../../core/money/rates/index.ts';
import channelLimits from '../../plugins/channel-limits.ts';

async function withLimits(
  options: Parameters<typeof channelLimits>[0],
  tools: Parameters<typeof testPlugins>[1] = {},
): Promise<TestedPlugins> {
  const channels = { one: ['at-one'], two: ['at-two'] };
  const tested = await testPlugins(channelLimits(options), { channels, ...tools });
  onTestFinished(() => tested.close());
  return tested;
}

describe('limits of a channel', () => {
  test('refuse an attempt in a way that lets another channel be tried', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const { run } = await withLimits({ channels: { one: { concurrency: 1 } } });
    const running = run({ model: 'at-one' }, { reply: reply('slow', pause(1_000), 'ly') });
    await clock.advance(0);
    const refused = await run({ model: 'at-one' });
    expect(refused).toMatchObject({ status: 429, sent: [], error: { origin: 'gateway', retryable: true } });
    expect(await run({ model: 'at-two' })).toMatchObject({ status: 200 });
    await clock.advance(1_000);
    expect(await running).toMatchObject({ status: 200, text: 'slowly' });
    expect(await run({ model: 'at-one' })).toMatchObject({ status: 200 });
  });

  test('are free again as soon as an attempt has failed, while the call goes on elsewhere', async () => {
    const { run } = await withLimits({ channels: { one: { concurrency: 1 } } });
    const failing = reply(fail(new GatewayError('upstream_error', 'It failed.')));
    expect(await run({ model: 'at-one' }, { reply: failing })).toMatchObject({
      error: { message: 'It failed.' },
    });
    expect(await run({ model: 'at-one' })).toMatchObject({ status: 200 });
  });

  test('count every request of a call of several answers that the provider makes one by one', async () => {
    const taken: unknown[] = [];
    const rates: Rates = {
      take: async (rules) => {
        taken.push(...rules);
        return { allowed: false, states: [], retryMs: 1000 };
      },
      state: 'ok',
      close: async () => {},
    };
    const { run } = await withLimits(
      { channels: { one: { requestsPerMinute: 10 } } },
      { tools: { rates }, channels: { one: { models: ['at-one'], traits: { refuses: ['choices'] } } } },
    );
    await run({ model: 'at-one', settings: { choices: 3 } });
    expect(taken).toMatchObject([{ subject: 'channel:one:requests', cost: 3 }]);
  });

  test('of other channels cost nothing', async () => {
    const take = vi.fn<Rates['take']>();
    const rates: Rates = { take, state: 'ok', close: async () => {} };
    const { run } = await withLimits({ channels: { one: { requestsPerMinute: 1 } } }, { tools: { rates } });
    expect(await run({ model: 'at-two' })).toMatchObject({ status: 200 });
    expect(take).not.toHaveBeenCalled();
  });

  test('of a channel that does not exist are an error at the start, which names those that do', async () => {
    await expect(withLimits({ channels: { three: { concurrency: 1 } } })).rejects.toThrow(
      'there is no channel "three". The channels are: one, two.',
    );
  });
});
