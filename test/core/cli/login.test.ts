import { afterEach, describe, expect, test } from 'vitest';
import { loginAt } from '../../../core/cli/login.ts';
import { deviceToken } from '../../../core/upstream/credentials/device-login.ts';
import { openServices } from '../../../core/upstream/services.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';
import { sluice } from './_process.ts';

let provider: ScriptedUpstream | undefined;
const services = openServices();
afterEach(async () => {
  await provider?.close();
  provider = undefined;
});

const started = {
  device_code: 'device-code-0123456789',
  user_code: 'ABCD-1234',
  verification_uri: 'https://github.example/login/device',
  expires_in: 900,
  interval: 5,
};
const pending = { error: 'authorization_pending' };

interface SignedIn {
  readonly token: string;
  readonly printed: readonly string[];
  readonly waits: readonly number[];
  readonly forms: readonly (readonly [url: string, form: Record<string, string>])[];
}

/** Signs in at a provider that gives these answers, one after the other; time passes by waiting alone. */
async function signIn(...answers: readonly object[]): Promise<SignedIn> {
  const waits: number[] = [];
  const printed: string[] = [];
  const forms: [string, Record<string, string>][] = [];
  provider = await startUpstream(({ url, headers, body }, response, count) => {
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
    forms.push([url, Object.fromEntries(new URLSearchParams(body.toString()))]);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answers[Math.min(count, answers.length) - 1]));
  });
  const login = {
    deviceUrl: `${provider.url}/device`,
    tokenUrl: `${provider.url}/token`,
    clientId: 'client',
    scope: 'read:user',
  };
  const token = await deviceToken(login, {
    ask: (request) => services.ask(request),
    print: (line) => printed.push(line),
    wait: (milliseconds) => Promise.resolve(void waits.push(milliseconds)),
    now: () => waits.reduce((sum, wait) => sum + wait, 0),
  });
  return { token, printed, waits, forms };
}

describe('signing in with a device code', () => {
  test('shows the address and the code, and gives the token once the code was entered', async () => {
    const { token, printed, waits, forms } = await signIn(started, pending, { error: 'slow_down' }, pending, {
      access_token: 'ghu_token-0123456789',
      token_type: 'bearer',
    });
    expect(token).toBe('ghu_token-0123456789');
    expect(printed).toEqual(['Open https://github.example/login/device and enter the code ABCD-1234.']);
    expect(waits).toEqual([5000, 5000, 10_000, 10_000]);
    expect(forms[0]).toEqual(['/device', { client_id: 'client', scope: 'read:user' }]);
    expect(forms[1]).toEqual([
      '/token',
      {
        client_id: 'client',
        device_code: started.device_code,
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      },
    ]);
  });

  test.each([
    [
      'the person refuses',
      [started, { error: 'access_denied', error_description: 'The user has denied it.' }],
      /denied/,
    ],
    ['the code ends at the provider', [started, { error: 'expired_token' }], /expired_token/],
    ['the code is not entered in time', [{ ...started, expires_in: 20 }, pending], /not entered in time/],
    [
      'the provider gives no code',
      [{ error: 'unauthorized_client' }],
      /returned no code: unauthorized_client/,
    ],
  ] as const)('fails with a sentence where %s', async (_name, answers, sentence) => {
    await expect(signIn(...answers)).rejects.toThrow(sentence);
  });

  test('ends, whatever times the provider names', async () => {
    const endless = { ...started, expires_in: 1e9, interval: 1e9 };
    await expect(signIn(endless, pending)).rejects.toThrow(/not entered in time/);
    expect(provider?.requests.length).toBeLessThan(40);
  });
});

test('sluice login names the kinds that have a sign-in', async () => {
  const { code, stderr } = await sluice(['login', 'openai']);
  expect(code).toBe(2);
  expect(stderr).toContain('Use one of: github-copilot.');
});

describe('--host', () => {
  const login = {
    deviceUrl: 'https://github.com/login/device/code',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    clientId: 'client',
    hasOwnHosts: true,
  };

  test('signs in at the host of a company', () => {
    expect(loginAt('copilot', login, 'acme.ghe.com')).toMatchObject({
      deviceUrl: 'https://acme.ghe.com/login/device/code',
      tokenUrl: 'https://acme.ghe.com/login/oauth/access_token',
    });
    expect(loginAt('copilot', login, undefined)).toBe(login);
  });

  test.each(['https://acme.ghe.com', 'acme.ghe.com/x', 'acme', 'a@b.com', 'acme.ghe.com:80', ''])(
    'refuses %j, which is no name of a host',
    (host) => {
      expect(() => loginAt('copilot', login, host)).toThrow(/Invalid --host/);
    },
  );

  test('is refused where the provider has no such hosts', () => {
    expect(() => loginAt('copilot', { ...login, hasOwnHosts: false }, 'acme.ghe.com')).toThrow(
      /does not support --host/,
    );
  });
});
