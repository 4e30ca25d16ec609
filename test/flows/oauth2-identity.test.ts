import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ChannelEntry, OAuth2Identity } from 'sluice';
import anthropic from '../../channels/anthropic.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import bedrock from '../../channels/bedrock/index.ts';
import gemini from '../../channels/gemini.ts';
import kling from '../../channels/kling/index.ts';
import openai from '../../channels/openai.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import watsonx from '../../channels/watsonx/index.ts';
import { readConfig } from '../../core/config/config.ts';
import { startAuthorizationServer, type AuthorizationServer } from '../support/authorization-server.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { formatNames, voices, type FormatName } from './_wire.ts';

type Json = Record<string, unknown>;

// Signs that Basic must encode before they are joined (RFC 6749, section 2.3.1).
const secret = 'p@ss:word/+% ä-0123456789';
const client = {
  id: 'gate:way',
  secret,
  clientAuth: 'basic',
  scopes: ['models.use', 'models.list'],
} as const;
let tokens: AuthorizationServer;
let provider: ScriptedUpstream;
/** True while the provider refuses all tokens. */
let refusesAll = false;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  tokens = await startAuthorizationServer(client);
  provider = await startUpstream(({ headers, url = '', method }, response) => {
    const json = { 'content-type': 'application/json' };
    if (refusesAll || !tokens.accepts(headers)) {
      // RFC 6750, section 3.1.
      response.writeHead(401, { ...json, 'www-authenticate': 'Bearer error="invalid_token"' });
      response.end(
        JSON.stringify({ error: { message: `The token ${headers.authorization} is not valid.` } }),
      );
      return;
    }
    const format: FormatName = url.includes('generateContent')
      ? 'generate-content'
      : url.includes('/messages')
        ? 'messages'
        : 'chat-completions';
    const body = method === 'GET' ? { data: [{ id: 'listed-1' }] } : voices[format].whole('hello');
    response.writeHead(200, json).end(JSON.stringify(body));
  });
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await provider.close();
  await tokens.close();
});
beforeEach(() => {
  tokens.broken = undefined;
  tokens.held = undefined;
  tokens.life = 3600;
  tokens.tokens.length = 0;
  tokens.requests.length = 0;
  provider.requests.length = 0;
  refusesAll = false;
});

const identity = (more: Partial<OAuth2Identity> = {}): OAuth2Identity => ({
  kind: 'oauth2',
  tokenUrl: `${tokens.url}/oauth2/token?tenant=corp`,
  clientId: client.id,
  clientSecret: secret,
  scope: 'models.use models.list',
  ...more,
});

const start = async (...channels: ChannelEntry[]): Promise<TestGateway> => {
  const gateway = await startGateway({ channels });
  gateways.push(gateway);
  return gateway;
};

const inside = (more: Json = {}): ChannelEntry =>
  openaiCompatible({
    name: 'inside',
    baseUrl: `${provider.url}/v1`,
    models: ['inside-model'],
    identity: identity(),
    ...more,
  });

const chat = (gateway: TestGateway, model = 'inside-model'): Promise<Response> =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
  });

const shown = (): readonly (string | undefined)[] =>
  provider.requests.map(({ headers }) => headers.authorization);

test('calls show a token of the authorization server, which is asked once for all of them', async () => {
  tokens.held = [];
  const gateway = await start(inside());
  const calls = Array.from({ length: 8 }, () => chat(gateway));
  await eventually(() => expect(tokens.held).toHaveLength(1));
  for (const release of tokens.held) release();
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(
    Array.from({ length: 8 }, () => 200),
  );
  expect(tokens.requests).toHaveLength(1);
  expect(shown()).toEqual(Array.from({ length: 8 }, () => `Bearer ${tokens.tokens[0]}`));
  expect(String(tokens.requests[0]?.body)).toBe('grant_type=client_credentials&scope=models.use+models.list');
  expect(tokens.requests[0]?.url).toBe('/oauth2/token?tenant=corp');
});

test('a client whose secret belongs into the form shows it there, and names the audience', async () => {
  const other = await startAuthorizationServer({ ...client, clientAuth: 'post' });
  const accepts = tokens.accepts;
  tokens.accepts = (headers) => other.accepts(headers);
  try {
    const gateway = await start(
      inside({
        identity: identity({ tokenUrl: other.url, clientAuth: 'post', audience: 'https://models.corp' }),
      }),
    );
    expect((await chat(gateway)).status).toBe(200);
    expect(Object.fromEntries(new URLSearchParams(String(other.requests[0]?.body)))).toEqual({
      grant_type: 'client_credentials',
      client_id: client.id,
      client_secret: secret,
      scope: 'models.use models.list',
      audience: 'https://models.corp',
    });
  } finally {
    tokens.accepts = accepts;
    await other.close();
  }
});

describe('channels of other kinds', () => {
  const kinds: readonly (readonly [string, () => ChannelEntry, string])[] = [
    [
      'anthropic',
      () => anthropic({ baseUrl: provider.url, models: ['m'], identity: identity() }),
      'messages',
    ],
    [
      'gemini',
      () => gemini({ baseUrl: provider.url, models: ['m'], identity: identity() }),
      'generate-content',
    ],
    [
      'openai',
      () => openai({ baseUrl: provider.url, models: ['m'], identity: identity() }),
      'chat-completions',
    ],
    [
      'azure-openai, which has identities of its own',
      () => azureOpenai({ baseUrl: provider.url, models: ['m'], identity: identity() }),
      'chat-completions',
    ],
    [
      'azure-openai of before v1',
      () =>
        azureOpenai({ baseUrl: provider.url, models: ['m'], apiVersion: '2024-10-21', identity: identity() }),
      'chat-completions',
    ],
    [
      'bedrock, which signs',
      () => bedrock({ baseUrl: provider.url, region: 'us-east-1', models: ['m'], identity: identity() }),
      'bedrock',
    ],
  ];

  test.each(kinds)('%s shows the token and no key', async (_name, channel, format) => {
    const gateway = await start(channel());
    const answer = await chat(gateway, 'm');
    // The provider of this test does not speak Bedrock’s format.
    expect(answer.status).toBe(format === 'bedrock' ? 502 : 200);
    const [request] = provider.requests;
    expect(request?.headers.authorization).toBe(`Bearer ${tokens.tokens[0]}`);
    expect(JSON.stringify([request?.headers, request?.url])).not.toContain('stand-in');
    for (const name of ['x-api-key', 'x-goog-api-key', 'api-key'])
      expect(request?.headers[name]).toBeUndefined();
  });

  test('a key goes along where the config has both', async () => {
    const gateway = await start(
      azureOpenai({ baseUrl: provider.url, key: 'subscription-1', models: ['m'], identity: identity() }),
    );
    expect((await chat(gateway, 'm')).status).toBe(200);
    expect(provider.requests[0]?.headers).toMatchObject({
      'api-key': 'subscription-1',
      authorization: `Bearer ${tokens.tokens[0]}`,
    });
  });

  test.each(formatNames)('a client of %s is answered', async (name) => {
    const gateway = await start(inside());
    const voice = voices[name];
    const answer = await fetch(gateway.url + voice.path('inside-model', false), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        ...voice.headers,
      },
      body: JSON.stringify(voice.body('inside-model', false)),
    });
    expect(voice.readWhole((await answer.json()) as Json).text).toBe('hello');
  });

  test('kinds that make something else of a key say so', async () => {
    const problems = (channel: ChannelEntry): string => {
      try {
        readConfig({ channels: [channel] }, 'gateway.config.ts');
      } catch (error) {
        return String(error);
      }
      return '';
    };
    expect(problems(kling({ identity: identity() }))).toBe('');
    const gateway = await startGateway({ channels: [kling({ identity: identity() })] }).catch(String);
    expect(gateway).toContain('its key must be written as ACCESS|SECRET');
    const exchanging = await start(
      watsonx({ baseUrl: provider.url, tokenUrl: provider.url, models: ['m'], identity: identity() }),
    );
    expect((await chat(exchanging, 'm')).status).toBe(502);
    expect(JSON.stringify(exchanging.lines)).toContain('exchanges its key for a token');
    expect(provider.requests).toEqual([]);
  });
});

test('the list of models is asked for with a token', async () => {
  const gateway = await start(inside({ models: 'discover' }));
  const list = await eventually(async () => {
    const answer = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toContain('listed-1');
    return data;
  });
  expect(list).toHaveLength(1);
});

describe('renewal', () => {
  test('a token that was revoked is replaced once for all calls, and none of them fails', async () => {
    const gateway = await start(inside());
    expect((await chat(gateway)).status).toBe(200);
    tokens.revoke(tokens.tokens[0]);
    tokens.held = [];
    const calls = Array.from({ length: 6 }, () => chat(gateway));
    await eventually(() => expect(tokens.held).toHaveLength(1));
    for (const release of tokens.held) release();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(tokens.requests).toHaveLength(2);
    expect(shown().filter((one) => one === `Bearer ${tokens.tokens[1]}`)).toHaveLength(6);
  });

  test('a provider that takes no token is asked twice by one call, and the client is told that it is unavailable', async () => {
    const gateway = await start(inside());
    refusesAll = true;
    const answer = await chat(gateway);
    expect(answer.status).toBe(502);
    expect(provider.requests).toHaveLength(2);
    expect(tokens.requests).toHaveLength(2);
    expect(JSON.stringify(await answer.json())).not.toContain('opaque.');
    expect(JSON.stringify(gateway.lines)).not.toContain('opaque.');
  });

  test('a token with a short life is asked for again before it ends, and not with every call', async () => {
    tokens.life = 60;
    const gateway = await start(inside());
    for (let call = 0; call < 5; call += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await chat(gateway)).status).toBe(200);
    }
    expect(tokens.requests).toHaveLength(1);
  });
});

describe('an authorization server that gives no token', () => {
  test.each([
    ['a wrong secret', { clientSecret: 'wrong-secret-123' }, /invalid_client|Client authentication failed/],
    ['a scope that it may not have', { scope: 'admin' }, /may not have this scope/],
    ['another way of authentication', { clientAuth: 'post' as const }, /another way of authentication/],
  ])(
    '%s: the log says what it said, and the client gets 502 in its format',
    async (_what, wrong, expected) => {
      const gateway = await start(inside({ identity: identity(wrong) }));
      for (const name of formatNames) {
        const voice = voices[name];
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const answer = await fetch(gateway.url + voice.path('inside-model', false), {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            ...voice.headers,
          },
          body: JSON.stringify(voice.body('inside-model', false)),
        });
        expect([502, 503]).toContain(answer.status);
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect(voice.isEnvelope((await answer.json()) as Json, answer.status)).toBe(true);
      }
      const lines = JSON.stringify(gateway.lines);
      expect(lines).toContain('returned no access token for the client');
      expect(lines).toContain('Check tokenUrl, clientId, clientSecret, scope and clientAuth');
      expect(lines).toMatch(expected);
      expect(provider.requests).toEqual([]);
      for (const text of [secret, encodeURIComponent(secret), 'wrong-secret-123'])
        expect(lines).not.toContain(JSON.stringify(text).slice(1, -1));
    },
  );

  test('what it answers is no token: the client gets 502, and the calls behind it go on once it works', async () => {
    const gateway = await start(inside());
    tokens.broken = { status: 200, body: '<html>sign in</html>' };
    expect((await chat(gateway)).status).toBe(502);
    expect(JSON.stringify(gateway.lines)).toContain('The response has no access_token');
    tokens.broken = undefined;
    await eventually(async () => expect((await chat(gateway)).status).toBe(200));
  });

  test('calls go to another channel', async () => {
    tokens.broken = { status: 503, body: 'busy' };
    const gateway = await start(
      inside({ priority: 1 }),
      openaiCompatible({
        name: 'other',
        baseUrl: `${provider.url}/v1`,
        models: ['inside-model'],
        key: 'a-key-of-its-own-12345678',
      }),
    );
    await chat(gateway);
    expect(shown()).toEqual(['Bearer a-key-of-its-own-12345678']);
  });
});

test('a mistake in the identity is told by its option, without the secret', async () => {
  const failure = await startGateway({
    channels: [
      inside({ identity: { kind: 'oauth2', tokenUrl: 'nowhere', clientId: 'c', clientSecret: secret } }),
    ],
  }).catch(String);
  expect(failure).toContain('identity.tokenUrl');
  expect(String(failure)).not.toContain(secret);
});
