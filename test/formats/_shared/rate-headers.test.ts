import { expect, onTestFinished, test, vi } from 'vitest';
import { chatRateHeaders } from '../../../core/formats/_openai/headers.ts';
import type { RateStanding } from '../../../core/sdk/format.ts';
import { rateHeaders } from '../../../core/formats/messages/headers.ts';

const standings: readonly RateStanding[] = [
  { counts: 'requests', limit: 60, remaining: 59, resetMs: 60_420 },
  { counts: 'tokens', limit: 1_000_000, remaining: 0, resetMs: 19.2 },
];

test('chat completions tell limits as counts and durations', () => {
  expect(chatRateHeaders(standings)).toEqual({
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1m0.42s',
    'x-ratelimit-limit-tokens': '1000000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '20ms',
  });
  expect(chatRateHeaders([], 12.5)).toEqual({ 'retry-after-ms': '13' });
});

test('durations are written as the official API writes them', () => {
  const reset = (resetMs: number): string | undefined =>
    chatRateHeaders([{ counts: 'tokens', limit: 1, remaining: 0, resetMs }])['x-ratelimit-reset-tokens'];
  expect([0, 999, 1_000, 1_500, 60_000, 360_000].map(reset)).toEqual([
    '0ms',
    '999ms',
    '1s',
    '1.5s',
    '1m0s',
    '6m0s',
  ]);
});

test('messages tell limits as counts and times, rounded up to the second', () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-20T10:00:00.500Z'), toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  expect(rateHeaders(standings)).toEqual({
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '59',
    'anthropic-ratelimit-requests-reset': '2026-11-20T10:01:01Z',
    'anthropic-ratelimit-tokens-limit': '1000000',
    'anthropic-ratelimit-tokens-remaining': '0',
    'anthropic-ratelimit-tokens-reset': '2026-11-20T10:00:01Z',
  });
});
