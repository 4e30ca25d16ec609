import { beforeEach, describe, expect, test } from 'vitest';
import { maskSecrets } from '../../../../core/log.ts';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { bearerTokens, type AccessToken } from '../../../../core/upstream/credentials/access-tokens.ts';
import { CredentialsError } from '../../../../core/upstream/credentials/renewed.ts';

const minute = 60_000;
const hour = 60 * minute;
const shown = (token: string) => ({ authorization: `Bearer ${token}` });

let now: number;
let tokenRequests: number;
/** Handler of the authorization server; receives the number of the request. */
let answer: (count: number) => Promise<AccessToken> | AccessToken;
const lines: { readonly fields: object; readonly sentence: string | undefined }[] = [];

beforeEach(() => {
  now = 0;
  tokenRequests = 0;
  lines.length = 0;
  answer = (count) => ({ token: `t${count}`, expiresAtMs: now + hour });
});

const log = { error: (fields: object, sentence?: string) => void lines.push({ fields, sentence }) };
const start = () =>
  bearerTokens(
    async () => answer((tokenRequests += 1)),
    log,
    () => now,
  );
/** Waits until what was begun in the background has settled. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('one token for all calls', () => {
  test('many calls at once ask once', async () => {
    const tokens = start();
    expect(await Promise.all([tokens(), tokens(), tokens()])).toEqual([
      shown('t1'),
      shown('t1'),
      shown('t1'),
    ]);
    expect(tokens()).toEqual(shown('t1'));
    expect(tokenRequests).toBe(1);
  });

  test('the next one is asked for four minutes ahead of the end, and calls go on with the old one meanwhile', async () => {
    const tokens = start();
    await tokens();
    now = 56 * minute;
    expect(tokens()).toEqual(shown('t1'));
    await settled();
    expect(tokenRequests).toBe(1);
    now += 1;
    expect(tokens()).toEqual(shown('t1'));
    await settled();
    expect(tokenRequests).toBe(2);
    expect(tokens()).toEqual(shown('t2'));
    now = hour + 50 * minute;
    expect(tokens()).toEqual(shown('t2'));
    expect(tokenRequests).toBe(2);
  });

  test('a token with a short life is renewed in the last quarter of it', async () => {
    answer = (count) => ({ token: `t${count}`, expiresAtMs: now + 8 * minute, lifetimeMs: 8 * minute });
    const tokens = start();
    await tokens();
    now = 6 * minute;
    tokens();
    await settled();
    expect(tokenRequests).toBe(1);
    now += 1;
    tokens();
    await settled();
    expect(tokenRequests).toBe(2);
  });

  test('a token that has ended is shown to nobody, not in its last millisecond either', async () => {
    const tokens = start();
    await tokens();
    now = hour;
    const next = tokens();
    expect(next).toBeInstanceOf(Promise);
    expect(await next).toEqual(shown('t2'));
  });
});

describe('a renewal that fails', () => {
  test('leaves the old token in force until its end, and is tried again after ten seconds', async () => {
    answer = (count) => {
      if (count > 1) throw new Error('the identity is gone.');
      return { token: 't1', expiresAtMs: hour };
    };
    const tokens = start();
    await tokens();
    now = 57 * minute;
    expect(tokens()).toEqual(shown('t1'));
    await settled();
    expect(tokenRequests).toBe(2);
    for (let call = 0; call < 10; call += 1) expect(tokens()).toEqual(shown('t1'));
    now += 9_999;
    expect(tokens()).toEqual(shown('t1'));
    await settled();
    expect(tokenRequests).toBe(2);
    now += 1;
    expect(tokens()).toEqual(shown('t1'));
    await settled();
    expect(tokenRequests).toBe(3);
    expect(lines).toEqual([
      { fields: {}, sentence: 'the identity is gone.' },
      { fields: {}, sentence: 'the identity is gone.' },
    ]);
    now = hour;
    await expect(tokens()).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('without a token in force is the failure of all calls that wait, without its reason; the next call asks anew', async () => {
    const cause = new CredentialsError('The key was revoked.', { account: 'gateway@corp' });
    answer = (count) => {
      if (count === 1) throw cause;
      return { token: 't2', expiresAtMs: hour };
    };
    const tokens = start();
    for (const result of await Promise.allSettled([tokens(), tokens()])) {
      const error: unknown = result.status === 'rejected' ? result.reason : undefined;
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({
        code: 'upstream_error',
        origin: 'gateway',
        message: 'The channel for this model has no valid credentials.',
        cause,
      });
    }
    expect(lines).toEqual([{ fields: { account: 'gateway@corp' }, sentence: 'The key was revoked.' }]);
    expect(await tokens()).toEqual(shown('t2'));
    expect(tokenRequests).toBe(2);
  });

  test('with something that is no error is logged as a text', async () => {
    answer = () => Promise.reject('no network' as unknown as Error);
    await expect(start()()).rejects.toBeInstanceOf(GatewayError);
    expect(lines).toEqual([{ fields: {}, sentence: 'no network' }]);
  });
});

describe('a token that the provider refused', () => {
  test('is not shown again', async () => {
    const tokens = start();
    const refused = await tokens();
    tokens.forget(refused);
    expect(await tokens()).toEqual(shown('t2'));
  });

  test('does not take a newer one with it, of which another call has asked meanwhile', async () => {
    const tokens = start();
    const refused = await tokens();
    tokens.forget(refused);
    await tokens();
    // The second of two calls hears the refusal of the first token late.
    tokens.forget(refused);
    expect(tokens()).toEqual(shown('t2'));
    expect(tokenRequests).toBe(2);
  });
});

describe('a refusal that comes late', () => {
  test('does not take the next token, which was asked for ahead and shown to nobody yet', async () => {
    const tokens = start();
    const refused = await tokens();
    now = 58 * minute;
    tokens();
    await settled();
    tokens.forget(refused);
    expect(tokens()).toEqual(shown('t2'));
    expect(tokenRequests).toBe(2);
  });

  test('of headers that were never shown changes nothing', async () => {
    const tokens = start();
    tokens.forget(shown('t0'));
    await tokens();
    tokens.forget(shown('t0'));
    expect(tokens()).toEqual(shown('t1'));
  });
});

describe('tokens in the log', () => {
  const token = (count: number): string => `opaque-token-of-a-server-${count}`;
  const renew = async (tokens: ReturnType<typeof start>): Promise<void> => {
    tokens.forget(await tokens());
  };

  test('are masked: the latest, and those before it that calls may still show', async () => {
    answer = (count) => ({ token: token(count), expiresAtMs: now + hour });
    const tokens = start();
    for (let count = 1; count <= 4; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await renew(tokens);
      expect(maskSecrets(`sent ${token(count)}.`)).toBe('sent ….');
    }
    for (const count of [2, 3, 4]) expect(maskSecrets(token(count))).toBe('…');
    // It has ended long ago: what is masked does not grow with the time that a process runs.
    expect(maskSecrets(token(1))).toBe(token(1));
  });

  test('stay masked where a server gives out the same one again and again', async () => {
    answer = () => ({ token: 'the-same-token-each-time', expiresAtMs: now + hour });
    const tokens = start();
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    for (let count = 0; count < 8; count += 1) await renew(tokens);
    expect(maskSecrets('the-same-token-each-time')).toBe('…');
  });
});
