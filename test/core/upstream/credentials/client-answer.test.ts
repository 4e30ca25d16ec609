import { Observable, of, throwError } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { upstreamError } from '../../../../core/formats/_shared/upstream-error/index.ts';
import type { Upstream } from '../../../../core/sdk/channel.ts';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { addReplyHeaders, replyHeaders } from '../../../../core/sdk/reply-headers.ts';
import {
  clientAnswer,
  isOfClient,
  ofClient,
  withoutCredential,
} from '../../../../core/upstream/credentials/client-answer.ts';
import { all } from '../../../support/answer.ts';
import { testCall } from '../../../support/call.ts';

const credential = 'canary-sings';
const errorBody = (message: string, type = 'x'): string => JSON.stringify({ error: { type, message } });

const upstream = (status: number, body: string, headers: Upstream['headers'] = {}): Upstream => ({
  status,
  headers,
  bytes: of(Buffer.from(body)),
});

/** Returns the error for a provider's response to a client's own credential. */
async function refusal(answer: Upstream): Promise<GatewayError> {
  const error: unknown = await clientAnswer(testCall().call, answer, credential).catch(
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof GatewayError)) throw new Error('It was not refused.', { cause: error });
  return error;
}

describe('an answer to the client’s own credential', () => {
  test('passes as it is below 400, and so does a failure of the provider or of the request', async () => {
    const fine = upstream(399, 'all');
    expect(await clientAnswer(testCall().call, fine, credential)).toBe(fine);
    for (const status of [400, 422, 500, 503]) {
      const failed = upstream(status, errorBody(`no ${credential}, ${credential}`), { 'x-a': 'b' });
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const answer = await clientAnswer(testCall().call, failed, credential);
      expect([answer.status, answer.headers]).toEqual([status, { 'x-a': 'b' }]);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await all(answer)).toString()).toBe(errorBody('no …, …'));
    }
  });

  test.each([
    [400, 'invalid_api_key', 'invalid_api_key', 400, false],
    [401, 'x', 'invalid_api_key', 401, false],
    [402, 'x', 'insufficient_quota', 402, false],
    [403, 'x', 'invalid_api_key', 403, false],
    [404, 'x', 'model_not_found', 404, false],
    [405, 'x', 'model_not_found', 405, false],
    [429, 'x', 'rate_limit_exceeded', 429, true],
  ])(
    'of %i (%s) is the client’s, as the provider says it',
    async (status, type, code, expectedStatus, retryable) => {
      expect(await refusal(upstream(status, errorBody(`no ${credential}`, type)))).toMatchObject({
        code,
        status: expectedStatus,
        message: 'no …',
        origin: 'client',
        retryable,
      });
    },
  );

  test('tells what clients act upon, and nothing else of the head', async () => {
    const headers = {
      'www-authenticate': 'Bearer error="invalid_token"',
      'x-should-retry': 'true',
      'set-cookie': ['a=b'],
      'x-internal': 'host-7',
      'retry-after': '17',
    };
    expect(await refusal(upstream(429, errorBody('no'), headers))).toMatchObject({
      retryAfter: 17,
      headers: { 'www-authenticate': 'Bearer error="invalid_token"', 'x-should-retry': 'true' },
    });
    expect((await refusal(upstream(401, errorBody('no'), { 'x-internal': 'host-7' }))).headers).toEqual({});
    expect((await refusal(upstream(401, errorBody('no')))).retryAfter).toBeUndefined();
  });

  test.each([
    ['nothing', upstream(401, '')],
    ['a page', upstream(401, '<html>no</html>')],
    ['more than any error is', upstream(401, errorBody('no'.repeat(40_000)))],
    ['an answer that breaks off', { ...upstream(401, ''), bytes: throwError(() => new Error('cut')) }],
  ])('that says %s is told in the gateway’s words', async (_, answer) => {
    expect(await refusal(answer)).toMatchObject({
      code: 'invalid_api_key',
      status: 401,
      message: 'The upstream refused the credentials of the channel.',
    });
  });

  test('that is as long as errors may be is told in its own words', async () => {
    const empty = errorBody('').length;
    const longest = errorBody('a'.repeat(64 * 1024 - empty));
    expect((await refusal(upstream(401, longest))).message).toMatch(/^a+…a+$/);
  });

  test('for which nobody waits any more ends with the call', async () => {
    const { call, exchange } = testCall();
    const silent = new Observable<Buffer>(() => {});
    const answer = clientAnswer(call, { ...upstream(401, ''), bytes: silent }, credential);
    exchange.end();
    await expect(answer).rejects.toMatchObject({ code: 'client_closed_request' });
  });

  test('tells the client how the limits of its account stand, unless a plugin has said so', async () => {
    const { call } = testCall();
    addReplyHeaders(call, { 'x-ratelimit-limit-requests': '5', 'x-mine': 'a' });
    const headers = {
      'x-ratelimit-limit-requests': '100',
      'x-ratelimit-remaining-tokens': '9',
      'anthropic-ratelimit-unified-reset': '1764',
      'x-ratelimit-odd-list': ['a', 'b'],
      'x-request-id': 'req',
      ratelimit: '1',
    };
    await clientAnswer(call, upstream(200, '', headers), credential);
    expect(call.get(replyHeaders)).toEqual({
      'x-ratelimit-limit-requests': '5',
      'x-ratelimit-remaining-tokens': '9',
      'anthropic-ratelimit-unified-reset': '1764',
      'x-mine': 'a',
    });
  });
});

describe('a failure of the client’s account', () => {
  test.each([
    [401, true],
    [402, true],
    [404, true],
    [429, true],
    [400, false],
    [413, false],
    [500, false],
    [529, false],
  ])('%i: %s', (status, expected) => {
    expect(isOfClient(upstreamError(status, errorBody('no')))).toBe(expected);
  });

  test('is none that the gateway makes', () => {
    expect(isOfClient(new GatewayError('rate_limit_exceeded', 'Too many.'))).toBe(false);
    expect(isOfClient(new Error('defect'))).toBe(false);
  });

  test.each([
    ['insufficient_quota', 'insufficient_quota', 402],
    ['rate_limit_error', 'rate_limit_exceeded', 429],
    ['not_found_error', 'model_not_found', 404],
    ['authentication_error', 'invalid_api_key', 401],
  ])('told inside of a 200 (%s) has the status of its kind', (type, code, status) => {
    const error = ofClient(upstreamError(200, errorBody('no', type)), '');
    expect(error).toMatchObject({ code, status, message: upstreamError(200, errorBody('no', type)).message });
  });

  test('of another kind is one of the credential', () => {
    expect(ofClient(new GatewayError('internal_error', 'no'), 'told')).toMatchObject({
      code: 'invalid_api_key',
      status: 401,
      message: 'told',
      retryable: false,
      headers: {},
    });
    expect(ofClient(upstreamError(400, errorBody('no')), 'told')).toMatchObject({
      code: 'invalid_api_key',
      status: 400,
    });
  });
});

describe('an error in which the provider quotes the credential', () => {
  test('is the same without it, in its sentence and in what the log gets', () => {
    const error = new GatewayError('invalid_request', `${credential} is wrong, ${credential}`, {
      param: 'a.b',
      origin: 'upstream',
      status: 422,
      retryable: true,
      retryAfter: 3,
      headers: { 'x-a': 'b' },
      details: { error_code: 'c' },
      cause: { fault: 'bad-request', status: 422, message: `say ${credential}` },
    });
    const masked = withoutCredential(error, credential);
    expect(masked).toMatchObject({
      code: 'invalid_request',
      message: '… is wrong, …',
      param: 'a.b',
      origin: 'upstream',
      status: 422,
      retryable: true,
      retryAfter: 3,
      headers: { 'x-a': 'b' },
      details: { error_code: 'c' },
      cause: { fault: 'bad-request', status: 422, message: 'say …' },
    });
  });

  test('only in its sentence, or only for the log, is masked there', () => {
    const cause = { fault: 'credentials', status: 401, message: 'no' };
    const shown = new GatewayError('upstream_error', `no ${credential}`, { cause });
    expect(withoutCredential(shown, credential)).toMatchObject({ message: 'no …', cause });
    const hidden = new GatewayError('upstream_error', 'no', { cause: { ...cause, message: credential } });
    const masked = withoutCredential(hidden, credential);
    expect(masked).toMatchObject({ message: 'no', cause: { message: '…' } });
    expect(masked.param).toBeUndefined();
  });

  test('nowhere is left as it is', () => {
    const error = new GatewayError('upstream_error', 'no', { cause: new Error('socket') });
    expect(withoutCredential(error, credential)).toBe(error);
  });
});
