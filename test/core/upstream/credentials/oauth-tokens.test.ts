import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { maskSecrets } from '../../../../core/log.ts';
import type { HttpClient } from '../../../../core/sdk/http.ts';
import type { AccessToken } from '../../../../core/upstream/credentials/access-tokens.ts';
import { oauthTokens, type TokenEndpoint } from '../../../../core/upstream/credentials/oauth-tokens.ts';
import { createHttpClient } from '../../../../core/upstream/send.ts';
import { startUpstream, type ScriptedUpstream } from '../../../support/upstream.ts';

let server: ScriptedUpstream;
let http: HttpClient;
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  server = await startUpstream((_request, response) => answer(response));
  http = createHttpClient({ connectTimeout: 5_000, idleTimeout: 5_000 });
});
afterAll(async () => {
  await http.close();
  await server.close();
});
beforeEach(() => {
  server.requests.length = 0;
});

const says = (body: unknown, status = 200): void => {
  answer = (response) =>
    void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
};
const fetchToken = (more: Partial<TokenEndpoint> = {}): Promise<AccessToken> =>
  oauthTokens(http, {
    name: 'The server',
    url: `${server.url}/token?tenant=corp`,
    form: { grant_type: 'client_credentials', scope: 'a b&c' },
    credentialName: 'the client',
    hint: 'Check the options.',
    ...more,
  })();

describe('an endpoint of tokens', () => {
  test('gets a form, and the client’s name and secret encoded in a header', async () => {
    says({ access_token: 'a-token-1', expires_in: 60 });
    await fetchToken({ basic: { id: 'gate:way', secret: 'p@ss:word/+ ä%' } });
    const [seen] = server.requests;
    expect([seen?.method, seen?.url, String(seen?.body)]).toEqual([
      'POST',
      '/token?tenant=corp',
      'grant_type=client_credentials&scope=a+b%26c',
    ]);
    expect(seen?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      // RFC 6749, section 2.3.1 and appendix B.
      authorization: `Basic ${Buffer.from('gate%3Away:p%40ss%3Aword%2F%2B+%C3%A4%25').toString('base64')}`,
    });
    await fetchToken();
    expect(server.requests[1]?.headers.authorization).toBeUndefined();
  });

  test.each([
    ['a number', 90, 90],
    ['a part of a second', 0.5, 0.5],
    ['a text, as older servers write it', '3599', 3599],
    ['nothing', undefined, 1200],
    ['null', null, 1200],
    ['nothing left', 0, 1200],
    ['less than nothing', -5, 1200],
    ['a text that is no number', 'soon', 1200],
    ['a text with a number in it', '60 s', 1200],
    ['a text with a number behind', 'in 60', 1200],
    ['a text without an end', '9'.repeat(13), 1200],
  ])('may tell the life of a token as %s', async (_, life, seconds) => {
    says({ access_token: 'a-token-1', expires_in: life });
    const before = Date.now();
    const token = await fetchToken();
    expect(token).toMatchObject({ token: 'a-token-1', lifetimeMs: seconds * 1000 });
    expect(token.expiresAtMs).toBeGreaterThanOrEqual(before + seconds * 1000);
    // From when it was asked for: the answer may have been long on its way.
    expect(token.expiresAtMs).toBeLessThanOrEqual(Date.now() + seconds * 1000);
  });

  test.each(['Bearer', 'bearer', 'BEARER', undefined])('may call the token %s', async (type) => {
    says({ access_token: 'a-token-1', token_type: type });
    expect((await fetchToken()).token).toBe('a-token-1');
  });

  test.each<[string, unknown, string]>([
    [
      'another type of token',
      { access_token: 'a', token_type: 'DPoP' },
      'The token is of the type DPoP, but only Bearer is supported',
    ],
    [
      'a type that is no text',
      { access_token: 'a', token_type: 7 },
      'The token is of the type 7, but only Bearer is supported',
    ],
    [
      'a type that is too long for a sentence',
      { access_token: 'a', token_type: 'x'.repeat(100) },
      `The token is of the type ${'x'.repeat(40)}, but only Bearer is supported`,
    ],
    ['no token', { token_type: 'Bearer' }, 'The response has no access_token'],
    ['an empty token', { access_token: '' }, 'The response has no access_token'],
    ['a token that is no text', { access_token: 7 }, 'The response has no access_token'],
    ['no JSON', '<html>', 'The response has no access_token'],
    ['a list', [], 'The response has no access_token'],
  ])('that answers with %s gave none, and the operator is told why', async (_, body, reason) => {
    says(body);
    await expect(fetchToken()).rejects.toThrow(
      new Error(`The server returned no access token for the client: ${reason}. Check the options.`),
    );
  });

  test('that refuses is quoted behind its status', async () => {
    says({ error: 'invalid_client', error_description: 'This client is not known.' }, 401);
    const failure: unknown = await fetchToken().catch((error: unknown) => error);
    expect(String(failure)).toBe(
      'Error: The server returned no access token for the client: The response has the status 401: This client is not known. Check the options.',
    );
    expect((failure as Error).cause).toBeInstanceOf(Error);
    says('busy', 503);
    await expect(fetchToken()).rejects.toThrow(
      new Error(
        'The server returned no access token for the client: The response has the status 503. Check the options.',
      ),
    );
  });

  test('that is not there is told by the reason of the connection', async () => {
    const gone = await startUpstream(() => {});
    await gone.close();
    await expect(fetchToken({ url: gone.url })).rejects.toThrow(
      /^The server returned no access token for the client: .*ECONNREFUSED.*[^.]\. Check the options\.$/,
    );
  });
});

describe('the secrets that are shown for a token', () => {
  test('are masked in the log: those of the form, and of the header in each of its spellings', async () => {
    says({ access_token: 'a-token-1' });
    const secret = 'header-secret:with signs';
    await fetchToken({
      form: { client_secret: 'form-secret-0123', apikey: 'form-apikey-0123', client_id: 'form-client-0123' },
      basic: { id: 'the-id', secret },
    });
    const spelled = Buffer.from('the-id:header-secret%3Awith+signs').toString('base64');
    for (const text of ['form-secret-0123', 'form-apikey-0123', secret, spelled])
      expect(maskSecrets(`[${text}]`)).toBe('[…]');
    expect(maskSecrets('form-client-0123')).toBe('form-client-0123');
    expect(maskSecrets('Basic')).toBe('Basic');
  });
});
