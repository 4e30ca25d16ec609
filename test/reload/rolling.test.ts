import { expect, test } from 'vitest';
import { tryRolling } from './rolling.ts';

test('two gateways behind a load balancer are restarted one after the other, and no call is refused or cut', async () => {
  const result = await tryRolling({
    members: { first: 'workers: 2', second: '' },
    rounds: 1,
    streams: 8,
    callers: 4,
    longest: 20,
    pace: 100,
    poll: 100,
    drainDelay: 600_000,
    hurries: true,
    print: () => {},
  });
  const { calls, streams, ...rest } = result;
  expect(rest).toEqual({
    refused: 0,
    cut: 0,
    unserved: 0,
    restarts: 2,
    exits: [0, 0],
    failedCalls: 0,
    brokenStreams: 0,
    reasons: [],
  });
  expect(calls).toBeGreaterThan(20);
  expect(streams).toBeGreaterThan(8);
});
