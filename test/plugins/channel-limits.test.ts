import { describe, expect, test, vi } from 'vitest';
import type { Channel, Target } from '../../core/sdk/call.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { Catalog } from '../../core/routing/catalog.ts';
import { MemoryRates } from '../../core/money/rates/memory.ts';
import type { Rates } from '../../core/money/rates/index.ts';
import channelLimits from '../../plugins/channel-limits.ts';
import { answering, handlerOf, testCall, testTools } from './_call.ts';

const channels = [{ id: 'one' }, { id: 'two' }] as unknown as readonly Channel[];
const catalog = { channels } as unknown as Catalog;

const attemptAt = (id: string) => {
  const { call, exchange } = testCall({ model: 'x' });
  return { call: call.with({ target: { channel: { id } } as unknown as Target }), exchange };
};

describe('limits of a channel', () => {
  test('refuse an attempt in a way that lets another channel be tried', async () => {
    const { tools } = testTools({ rates: new MemoryRates(), catalog });
    const handler = await handlerOf(channelLimits, tools, { channels: { one: { concurrency: 1 } } });
    const running = attemptAt('one');
    await handler(running.call, answering());
    const refused = handler(attemptAt('one').call, answering());
    await expect(refused).rejects.toMatchObject({ status: 429, origin: 'gateway', retryable: true });
    await handler(attemptAt('two').call, answering());
    running.exchange.end();
    await Promise.resolve();
    await handler(attemptAt('one').call, answering());
  });

  test('are free again as soon as an attempt has failed, while the call goes on elsewhere', async () => {
    const { tools } = testTools({ rates: new MemoryRates(), catalog });
    const handler = await handlerOf(channelLimits, tools, { channels: { one: { concurrency: 1 } } });
    const failing = () => Promise.reject(new GatewayError('upstream_error', 'It failed.'));
    await expect(handler(attemptAt('one').call, failing)).rejects.toThrow('It failed.');
    await handler(attemptAt('one').call, answering());
  });

  test('of other channels cost nothing', async () => {
    const take = vi.fn<Rates['take']>();
    const { tools } = testTools({ rates: { take, state: 'ok', close: async () => {} }, catalog });
    const handler = await handlerOf(channelLimits, tools, { channels: { one: { requestsPerMinute: 1 } } });
    await handler(attemptAt('two').call, answering());
    expect(take).not.toHaveBeenCalled();
  });

  test('of a channel that does not exist are an error at the start, which names those that do', async () => {
    const { tools } = testTools({ rates: new MemoryRates(), catalog });
    await expect(
      handlerOf(channelLimits, tools, { channels: { three: { concurrency: 1 } } }),
    ).rejects.toThrow('there is no channel "three". The channels are: one, two.');
  });
});
