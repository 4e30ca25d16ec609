import { describe, expect, test } from 'vitest';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import { failureCause } from '../../../core/routing/failure-cause.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';

const failed = (cause?: unknown): GatewayError =>
  new GatewayError('upstream_error', 'The upstream failed.', { cause });

describe('the cause of a failure', () => {
  test.each([
    ['without words', upstreamError(503, ''), 503],
    ['with words', upstreamError(500, '{"error":{"message":"it broke"}}'), 500],
  ])('is the status of the provider, %s', (_name, error, status) => {
    expect(failureCause(error)?.status).toBe(status);
  });

  test('has the words of the provider', () => {
    expect(failureCause(upstreamError(500, '{"error":{"message":"it broke"}}'))).toEqual({
      status: 500,
      message: 'it broke',
    });
  });

  test('names errors of a kind, and leaves out the name of plain ones', () => {
    expect(failureCause(failed(new TypeError('no number')))).toEqual({ message: 'TypeError: no number' });
    expect(failureCause(failed(new Error('no route')))).toEqual({ message: 'no route' });
  });

  test('joins four messages at most, and says each once', () => {
    let error = new Error('deepest');
    for (const message of ['e', 'd', 'c', 'b', 'a']) error = new Error(message, { cause: error });
    expect(failureCause(failed(error))).toEqual({ message: 'a: b: c: d' });
    const quoting = new Error('asking failed: no route', { cause: new Error('no route') });
    expect(failureCause(failed(quoting))).toEqual({ message: 'asking failed: no route' });
  });

  test('is not there where nothing lies behind', () => {
    expect(failureCause(failed())).toBeUndefined();
    expect(failureCause(failed(new Error('')))).toBeUndefined();
    expect(failureCause(failed('a text'))).toBeUndefined();
  });
});
