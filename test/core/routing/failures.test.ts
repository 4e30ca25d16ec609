import { describe, expect, test } from 'vitest';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import {
  isRepeatable,
  shouldFallBack,
  nobodyKnows,
  failureScopeOf,
  selectFinalError,
} from '../../../core/routing/failures.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';

const upstreamErrorOf = (
  status: number,
  message = 'why not',
  headers: Record<string, string> = {},
): GatewayError => upstreamError(status, JSON.stringify({ error: { message } }), headers);
const limit = (seconds?: number): GatewayError =>
  upstreamErrorOf(429, 'slow down', seconds === undefined ? {} : { 'retry-after': String(seconds) });

describe('another target is asked', () => {
  test.each([
    ['after a failure of the provider', upstreamErrorOf(500), true],
    ['after a limit of the provider', limit(), true],
    ['after a failure of the gateway, which may be that of one channel', new Error('oops'), true],
    ['not after a request that is wrong', upstreamErrorOf(400), false],
    ['not after a limit of the caller’s own', new GatewayError('rate_limit_exceeded', 'too many'), false],
    ['not after a body that came too late', new GatewayError('request_timeout', 'too late'), false],
    [
      'not after what will never be',
      new GatewayError('endpoint_not_supported', 'no', { origin: 'upstream' }),
      false,
    ],
  ])('%s', (_what, error, expected) => {
    expect(shouldFallBack(error)).toBe(expected);
  });

  test.each([408, 409, 425])('only after the same once more where the provider answers %i', (status) => {
    expect(isRepeatable(upstreamErrorOf(status))).toBe(true);
  });

  test('at once after any other failure, with or without words of the provider', () => {
    for (const status of [400, 401, 404, 429, 500, 503])
      expect([status, isRepeatable(upstreamErrorOf(status))]).toEqual([status, false]);
    expect(isRepeatable(new GatewayError('upstream_cut', 'cut', { origin: 'upstream' }))).toBe(false);
  });
});

test('a failure spoils a key, of which another is the next best, or the limit of one, or the channel', () => {
  expect([failureScopeOf(upstreamErrorOf(401)), failureScopeOf(upstreamErrorOf(402))]).toEqual([
    ['key', true],
    ['key', true],
  ]);
  expect(failureScopeOf(limit())).toEqual(['key', false]);
  for (const error of [upstreamErrorOf(500), upstreamErrorOf(404), new GatewayError('upstream_cut', 'cut')])
    expect(failureScopeOf(error)).toEqual(['channel', false]);
});

describe('what the client is told', () => {
  test('of several failures is the latest that is no limit', () => {
    const [first, second] = [upstreamErrorOf(500, 'first'), upstreamErrorOf(500, 'second')];
    expect(selectFinalError([first, second, limit(3)])).toBe(second);
    expect(selectFinalError([limit(3), first])).toBe(first);
  });

  test('of limits alone is the latest of them, with the shortest wait that is known', () => {
    const last = limit(9);
    expect(selectFinalError([limit(9), last])).toBe(last);
    expect(selectFinalError([limit(), last])).toBe(last);
    const shorter = selectFinalError([limit(4), last]);
    expect(shorter).toMatchObject({
      code: 'rate_limit_exceeded',
      status: last.status,
      message: last.message,
      origin: 'upstream',
      retryable: true,
      retryAfter: 4,
      cause: last.cause,
    });
    expect(selectFinalError([last], 2)).toMatchObject({ retryAfter: 2 });
    expect(selectFinalError([last], 20)).toBe(last);
    expect(selectFinalError([limit()]).retryAfter).toBeUndefined();
    expect(selectFinalError([limit()], 6)).toMatchObject({ retryAfter: 6, message: 'slow down' });
  });

  test('of headers, those of the last', () => {
    const details = { origin: 'upstream', retryAfter: 9, headers: { 'x-limit': '5' } } as const;
    const last = new GatewayError('rate_limit_exceeded', 'slow down', details);
    expect(selectFinalError([limit(4), last])).toMatchObject({ retryAfter: 4, headers: { 'x-limit': '5' } });
  });

  test('of nothing is a defect', () => {
    expect(() => selectFinalError([])).toThrow('Nothing has failed.');
  });

  test('of a model that no provider has is that, and that asking again is of no use', () => {
    const unknown = upstreamErrorOf(404, 'The model `m` does not exist');
    expect(nobodyKnows([unknown, unknown], 'm')).toMatchObject({
      code: 'no_available_channel',
      status: 503,
      message: 'No provider of a channel knows the model "m".',
      param: 'model',
      origin: 'upstream',
      retryable: false,
      cause: unknown.cause,
    });
    expect(nobodyKnows([unknown, upstreamErrorOf(404, 'No item with id x')], 'm')).toBeUndefined();
    expect(nobodyKnows([upstreamErrorOf(500), unknown], 'm')).toBeUndefined();
  });
});
