import { definePlugin, type CallOutcome, type GatewayEvent, type PluginEntry } from 'sluice';
import { testPlugins, type RunOptions } from 'sluice/testing';
import { expect, onTestFinished, test } from 'vitest';
import type { Amounts } from '../../core/model/usage-record.ts';
import type { Bookkeeper, Reservation } from '../../core/money/ledger/index.ts';
import type { Settlement } from '../../core/money/ledger/index.ts';
import logging from '../../plugins/logging.ts';
import metrics from '../../plugins/metrics/index.ts';
import quota from '../../plugins/quota/index.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import usageLog from '../../plugins/usage-log/index.ts';

const reply: readonly GatewayEvent[] = [
  { type: 'request', model: 'x', stream: true },
  { type: 'attempt', channel: 'c', model: 'm' },
  { type: 'text-delta', block: 0, choice: 0, text: 'x'.repeat(400) },
];
const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 100, output: 50, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
};
const goesOn = { wait: 2 ** 30 };

/** The settlement and the outcomes of one call through these plugins. */
async function accountedBy(plugins: readonly PluginEntry[], run: RunOptions) {
  const booked: Settlement[] = [];
  const outcomes: CallOutcome[] = [];
  const bookkeeper = {
    full: false,
    waiting: 0,
    reserve: async (keyId: string, _budgets: unknown, most: Amounts): Promise<Reservation> => ({
      id: 'rsv_1',
      keyId,
      most,
      lease: 60_000,
    }),
    watch: () => () => {},
    release: () => {},
    enqueue: (settlement: Settlement) => void booked.push(settlement),
  } as unknown as Bookkeeper;
  const asking = (stage: 'observe' | 'admit' | 'shape') =>
    definePlugin({
      name: `asking-in-${stage}`,
      stage,
      setup: () => (call, next) => {
        call.onOutcome((outcome) => outcomes.push(outcome));
        return next(call);
      },
    })();
  const tested = await testPlugins([...plugins, asking('observe'), asking('admit'), asking('shape')], {
    settings: { routing: { hedge: false }, prices: { x: { input: 10, output: 20 } } },
    tools: { bookkeeper },
  });
  onTestFinished(() => tested.close());
  const key = {
    id: 'key_1',
    tokensPerMinute: 10_000_000,
    budgets: [{ unit: 'micro-dollar', period: 'day', amount: 1_000_000_000 } as const],
  };
  await tested.run({ model: 'x', stream: true, key }, run);
  return {
    booked: booked.map(({ charged, reservation, record: { input, output, microDollars, ended } }) => ({
      charged,
      reservation,
      input,
      output,
      microDollars,
      ended,
    })),
    outcomes: outcomes.map(({ ended, cost, usage: used }) => ({
      ended,
      microDollars: cost?.microDollars,
      output: used?.output,
    })),
    lines: tested.lines.filter(({ level }) => level === 'error'),
  };
}

test.each<[string, RunOptions, number, string]>([
  ['is complete', { reply: [...reply, usage] }, 50, 'complete'],
  ['is left by its client', { reply: [...reply, goesOn], leaveAfter: reply.length }, 100, 'left'],
])(
  'a call that %s has the same figures in whatever order plugins stand',
  async (_how, run, output, ended) => {
    const plugins = [usageLog(), metrics(), logging(), rateLimit(), quota()];
    const orders = plugins.map((_one, index) => [...plugins.slice(index), ...plugins.slice(0, index)]);
    for (const order of [...orders, ...orders.map((one) => one.toReversed())]) {
      // oxlint-disable-next-line no-await-in-loop
      const { booked, outcomes, lines } = await accountedBy(order, run);
      expect(booked).toMatchObject([{ reservation: 'rsv_1', output, ended }]);
      const { microDollars } = booked[0] ?? {};
      expect(microDollars).toBeGreaterThanOrEqual(output * 20);
      expect(outcomes).toEqual(Array.from({ length: 3 }, () => ({ ended, microDollars, output })));
      expect(lines).toEqual([]);
    }
  },
);
