import { describe, expect, test } from 'vitest';
import { upstreamError } from '../../../../core/formats/_shared/upstream-error/index.ts';
import { diagnose, sentenceOf } from '../../../../core/routing/health/diagnosis.ts';
import { channelStanding } from '../../../../core/routing/health/index.ts';
import { GatewayError, type ErrorCode, type ErrorDetails } from '../../../../core/sdk/errors.ts';
import type { TargetHealth, Standing } from '../../../../core/sdk/health.ts';

const errorOf = (status: number, message: string, headers: Record<string, string> = {}): GatewayError =>
  upstreamError(status, JSON.stringify({ error: { message } }), headers);
/** An error without words of a provider. */
const plain = (code: ErrorCode, details: ErrorDetails = {}): GatewayError =>
  new GatewayError(code, 'a sentence', details);
const upstream = { origin: 'upstream' } as const;

describe('what a failure says about a channel', () => {
  test.each([
    ['no connection', plain('upstream_error', upstream), 'failure'],
    ['a reply that was cut', plain('upstream_cut', upstream), 'failure'],
    ['a reply that did not begin', plain('upstream_timeout', upstream), 'failure'],
    [
      'a failure that is the gateway’s by its origin',
      plain('upstream_error', { origin: 'gateway' }),
      'failure',
    ],
    [
      'a connection that was closed unseen',
      plain('upstream_cut', { ...upstream, staleConnection: true }),
      'nothing',
    ],
    ['a client that left', plain('client_closed_request', upstream), 'nothing'],
    ['a plugin that broke', plain('internal_error'), 'nothing'],
    ['a mistake of the caller', plain('invalid_value'), 'fine'],
    ['a refusal by the channel itself', plain('unsupported_content', upstream), 'fine'],
    ['a failure by the channel itself', plain('server_is_overloaded', upstream), 'failure'],
    ['a 500 by the channel itself', plain('internal_error', { ...upstream, status: 500 }), 'failure'],
    ['a provider that is too slow', errorOf(408, 'took too long'), 'failure'],
    ['a provider that breaks', errorOf(500, 'broke'), 'failure'],
    ['a provider with too much to do', errorOf(529, 'busy'), 'failure'],
    ['a request that is wrong', errorOf(400, 'bad field'), 'fine'],
    ['a key that is wrong', errorOf(401, 'bad key'), 'refused'],
    ['an account without money', errorOf(402, 'no credit'), 'refused'],
  ])('after %s', (_what, error, says) => {
    expect(diagnose(error).says).toBe(says);
  });

  test.each([
    ['The model `x` does not exist', 'unknown'],
    ['Unknown MODELS', 'unknown'],
    ['The API deployment for this resource does not exist', 'unknown'],
    ['no such deployments', 'unknown'],
    ['That engine is gone', 'unknown'],
    ['engines are gone', 'unknown'],
    ['', 'failure'],
    ['Not Found', 'failure'],
    ['"Not found".', 'failure'],
    ['...', 'failure'],
    ['No item with id vid_1', 'fine'],
    ['File not found: remodeled.txt', 'fine'],
    ['not found here', 'fine'],
  ])('after 404 with %j', (message, says) => {
    expect(diagnose(errorOf(404, message)).says).toBe(says);
  });

  test('is for how long, where a provider says so', () => {
    const waits = { 'retry-after': '7' };
    expect(diagnose(errorOf(429, 'slow down', waits))).toEqual({ says: 'patience', patience: 7_000 });
    expect(diagnose(errorOf(429, 'slow down'))).toEqual({ says: 'patience' });
    expect(diagnose(errorOf(503, 'busy', waits))).toEqual({ says: 'failure', patience: 7_000 });
    expect(diagnose(plain('rate_limit_exceeded', { ...upstream, retryAfter: 2 }))).toEqual({
      says: 'patience',
      patience: 2_000,
    });
    expect(diagnose(plain('no_available_channel', { ...upstream, retryAfter: 2 }))).toEqual({
      says: 'failure',
      patience: 2_000,
    });
  });
});

describe('the sentence of a failure', () => {
  test('is the provider’s own, where it gave one', () => {
    expect(sentenceOf(errorOf(401, 'Incorrect key'))).toBe('Incorrect key');
    expect(sentenceOf(upstreamError(500, ''))).toBe(upstreamError(500, '').message);
    expect(sentenceOf(plain('upstream_cut'))).toBe('a sentence');
  });

  test('is cut where it is long, and shows no key', () => {
    expect(sentenceOf(new GatewayError('upstream_cut', 'x '.repeat(400)))).toHaveLength(500);
    expect(sentenceOf(plain('upstream_cut'))).toHaveLength('a sentence'.length);
    const key = `sk-proj-${'a1B2'.repeat(10)}`;
    expect(sentenceOf(new GatewayError('upstream_cut', `refused ${key}`))).not.toContain(key);
  });
});

describe('a channel stands', () => {
  const breaker = (key: string, standing: Standing, model?: string): TargetHealth => ({
    channel: 'x',
    key,
    standing,
    failures: 0,
    ...(model === undefined ? {} : { model }),
  });
  const standing = (...report: readonly TargetHealth[]): readonly [Standing, Standing] => {
    const keys = ['a', 'b'].map((id, index) => ({ id, index }));
    const { best, worst } = channelStanding(report, { id: 'x', keys });
    return [best, worst];
  };

  test('as its best and its worst key, in this order: up, probing, cooling, resting', () => {
    expect(standing()).toEqual(['up', 'up']);
    expect(standing(breaker('a', 'probing'), breaker('b', 'cooling'))).toEqual(['probing', 'cooling']);
    expect(standing(breaker('a', 'resting'), breaker('b', 'cooling'))).toEqual(['cooling', 'resting']);
    expect(standing(breaker('b', 'probing'))).toEqual(['up', 'probing']);
    expect(standing(breaker('a', 'resting'), breaker('b', 'probing'))).toEqual(['probing', 'resting']);
  });

  test('without regard to single models, or to channels of other names', () => {
    expect(standing(breaker('a', 'resting', 'm'), breaker('b', 'resting', 'm'))).toEqual(['up', 'up']);
    expect(standing({ ...breaker('a', 'resting'), channel: 'y' })).toEqual(['up', 'up']);
  });

  test('as its own keys do, whatever is known of one that it no longer has', () => {
    const one = { id: 'x', keys: [{ id: 'a', index: 0 }] };
    expect(channelStanding([breaker('gone', 'resting')], one)).toEqual({ best: 'up', worst: 'up' });
    expect(channelStanding([breaker('gone', 'probing'), breaker('a', 'cooling')], one)).toEqual({
      best: 'cooling',
      worst: 'cooling',
    });
  });

  test('up where it has no keys', () => {
    expect(channelStanding([], { id: 'x', keys: [] })).toEqual({ best: 'up', worst: 'up' });
  });
});
