import { generateKeyPairSync } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { googleTokens } from '../../channels/vertex/identity.ts';
import azureFoundry from '../../channels/azure-foundry.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import vertex from '../../channels/vertex/index.ts';
import { editMembers } from '../../core/json/edit-members.ts';
import { voices } from '../flows/_wire.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startIdentities } from './_identities.ts';

type Json = Record<string, unknown>;

const identities = await startIdentities();

/** Sends what would go to a cloud's endpoint to the one of this machine. */
const here = (async (input: string | URL | Request, init?: RequestInit) => {
  const { pathname, search } = new URL(input instanceof Request ? input.url : String(input));
  return fetch(identities.url + pathname + search, init);
}) as typeof fetch;

const post = (gateway: TestGateway, path: string, body: Json) =>
  fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const sendChat = (gateway: TestGateway, model: string) =>
  post(gateway, '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] });

describe('members of a body', () => {
  test('whatever the body, what is not named stays byte for byte', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(0, 1, 2),
        fc.string(),
        (object, indent, model) => {
          const text = JSON.stringify({ ...object, model }, undefined, indent);
          const edited = editMembers(Buffer.from(text), { model: undefined, version: 'v' }).toString();
          const { model: _, ...rest } = JSON.parse(text) as Json;
          expect(JSON.parse(edited)).toEqual({ ...rest, version: 'v' });
        },
      ),
    );
  });

  test('numbers that no program can hold are not touched', () => {
    const body = '{"model":"m", "tools":[{"n":12345678901234567890.10}], "\\u006dodel":"x","z":1e400}';
    expect(editMembers(body, { model: undefined }).toString()).toBe(
      '{"tools":[{"n":12345678901234567890.10}],"z":1e400}',
    );
  });
});

describe('Google', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const account = {
    type: 'service_account',
    client_email: 'gateway@project.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };

  test('a service account’s key is changed for a token', async () => {
    const { token, expiresAtMs } = await googleTokens({ credentials: account }, here)();
    expect(token).toBe('token-1');
    expect(expiresAtMs).toBeGreaterThan(Date.now());
    expect(identities.requests[0]?.body).toContain('jwt-bearer');
  });

  test('a service account’s key is read from a JSON text too', async () => {
    const credentials = `\n ${JSON.stringify(account, null, 2)}\n`;
    expect(await googleTokens({ credentials }, here)()).toMatchObject({ token: 'token-1' });
    expect(identities.requests[0]?.body).toContain('jwt-bearer');
  });

  test.each([
    ['a JSON text that is cut', JSON.stringify(account).slice(0, -2)],
    ['a private key alone', account.private_key],
    ['a file that is not there', '/no/such/place/secret-account.json'],
    ['a text of another kind', JSON.stringify({ ...account, type: 'unknown' })],
  ])('credentials that cannot be used are not shown: %s', async (_case, credentials) => {
    const failure = (await googleTokens({ credentials }, here)().catch((error: unknown) => error)) as Error;
    expect(failure.message).toMatch(
      /^Google returned no access token for the .*credentials.*: .*service account/,
    );
    const shown = JSON.stringify([failure.message, failure.stack, String(failure.cause)]);
    expect(shown).not.toContain('PRIVATE KEY');
    expect(shown).not.toContain('secret-account');
    expect(shown).not.toContain(account.private_key.slice(60, 100));
  });

  test('a key that is refused is named with what to do, and never shown', async () => {
    identities.answer = {
      status: 400,
      body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' },
    };
    const failure = await googleTokens({ credentials: account }, here)().catch((error: unknown) => error);
    expect(String(failure)).toMatch(/credentials in the config.*invalid_grant.*service account/);
    expect(String(failure)).not.toContain('PRIVATE KEY');
  });

  test('a workload of another cloud changes its own token for one of Google’s', async () => {
    const { token } = await googleTokens({
      credentials: {
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/p',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${identities.url}/sts`,
        credential_source: { url: `${identities.url}/own-token` },
      },
    })();
    expect(token).toBe('token-1');
    expect(identities.requests.map(({ url }) => url)).toEqual(['/own-token', '/sts']);
  });

  test('the account of the machine is asked at its metadata server', async () => {
    vi.stubEnv('GCE_METADATA_HOST', identities.url.replace('http://', ''));
    vi.stubEnv('METADATA_SERVER_DETECTION', 'assume-present');
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '');
    vi.stubEnv('CLOUDSDK_CONFIG', '/nowhere');
    vi.stubEnv('HOME', '/nowhere');
    const { token } = await googleTokens({})();
    expect(token).toBe('token-1');
    expect(identities.requests.at(-1)).toMatchObject({
      url: expect.stringContaining('/computeMetadata/v1/instance/service-accounts/default/token'),
      headers: { 'metadata-flavor': 'Google' },
    });
  });

  test('a file that is not there is named, with the variable that names it', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '/nowhere/key.json');
    await expect(googleTokens({})()).rejects.toThrow(
      /GOOGLE_APPLICATION_CREDENTIALS names, \/nowhere\/key\.json/,
    );
  });
});

describe('requests to clouds', () => {
  let gateway: TestGateway;
  let upstream: ScriptedUpstream;

  beforeAll(async () => {
    upstream = await startUpstream((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const { url } = request;
      if (request.body.includes('uncounted'))
        response.end('{"predictions":[{"embeddings":{"values":[0.5,1]}}]}');
      else if (url.includes(':predict'))
        response.end('{"predictions":[{"embeddings":{"values":[0.5,1],"statistics":{"token_count":3}}}]}');
      else if (url.includes('anthropic')) response.end(JSON.stringify(voices.messages.whole('hello')));
      else if (url.includes('generateContent'))
        response.end(JSON.stringify(voices['generate-content'].whole('hello')));
      else response.end(JSON.stringify(voices['chat-completions'].whole('hello')));
    });
    gateway = await startGateway({
      channels: [
        vertex({ key: 'express', baseUrl: `${upstream.url}/v1/projects/p/locations/l` }),
        azureFoundry({
          key: 'foundry',
          baseUrl: upstream.url,
          models: { sonnet: 'claude-sonnet', phi: 'Phi-4' },
        }),
        azureOpenai({ key: 'azure', baseUrl: upstream.url, models: ['deployment'] }),
      ],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const chat = async (model: string): Promise<{ url: string; body: Json; headers: Json }> => {
    upstream.requests.length = 0;
    const answer = await sendChat(gateway, model);
    expect({ status: answer.status, text: await answer.text() }).toMatchObject({
      status: 200,
      text: expect.stringContaining('hello'),
    });
    const [seen] = upstream.requests;
    return {
      url: seen?.url ?? '',
      body: JSON.parse(String(seen?.body)) as Json,
      headers: seen?.headers ?? {},
    };
  };

  test('each maker of models stands at its own place on Vertex AI', async () => {
    const root = '/v1/projects/p/locations/l';
    expect((await chat('gemini-2.5-flash')).url).toBe(
      `${root}/publishers/google/models/gemini-2.5-flash:generateContent`,
    );
    const claude = await chat('claude-sonnet-4-5@20250929');
    expect(claude.url).toBe(`${root}/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict`);
    expect(claude.body).toMatchObject({ anthropic_version: 'vertex-2023-10-16' });
    expect(claude.body).not.toHaveProperty('model');
    expect(claude.headers).not.toHaveProperty('anthropic-version');
    expect((await chat('mistral-medium-3')).url).toBe(
      `${root}/publishers/mistralai/models/mistral-medium-3:rawPredict`,
    );
    const llama = await chat('meta/llama-4-maverick-maas');
    expect(llama.url).toBe(`${root}/endpoints/openapi/chat/completions`);
    expect(llama.body).toMatchObject({ model: 'meta/llama-4-maverick-maas' });
    expect(llama.headers).toMatchObject({ 'x-goog-api-key': 'express' });
  });

  test('embeddings in several requests are estimated where Vertex AI counts the tokens of some alone', async () => {
    const input = ['counted', 'uncounted '.repeat(100)];
    const answer = await post(gateway, '/v1/embeddings', { model: 'gemini-embedding-001', input });
    const { data, usage } = (await answer.json()) as {
      data: unknown[];
      usage: { prompt_tokens: number };
    };
    expect(data).toHaveLength(2);
    expect(usage.prompt_tokens).toBeGreaterThan(100);
  });

  test('embeddings are predicted on Vertex AI', async () => {
    upstream.requests.length = 0;
    const answer = await post(gateway, '/v1/embeddings', {
      model: 'text-embedding-005',
      input: 'hi',
      dimensions: 2,
    });
    expect(await answer.json()).toMatchObject({
      data: [{ embedding: [0.5, 1] }],
      usage: { prompt_tokens: 3 },
    });
    expect(JSON.parse(String(upstream.requests[0]?.body))).toEqual({
      instances: [{ content: 'hi' }],
      parameters: { outputDimensionality: 2 },
    });
  });

  test('Claude and all others stand at their own places on Foundry', async () => {
    const claude = await chat('sonnet');
    expect(claude.url).toBe('/anthropic/v1/messages');
    expect(claude.headers).toMatchObject({ 'x-api-key': 'foundry', 'anthropic-version': '2023-06-01' });
    expect((await chat('phi')).url).toBe('/openai/v1/chat/completions');
  });

  test('a failing identity is told in the client’s format', async () => {
    const own = await startGateway({
      channels: [
        vertex({
          project: 'p',
          credentials: '/nowhere/key.json',
          models: ['gemini-3-pro'],
          baseUrl: upstream.url,
        }),
      ],
    });
    try {
      const failed = await sendChat(own, 'gemini-3-pro');
      expect(failed.status).toBe(502);
      expect(await failed.json()).toMatchObject({
        error: { message: 'The channel for this model has no valid credentials.' },
      });
      expect(own.lines).toContainEqual(
        expect.objectContaining({
          channel: 'vertex',
          msg: expect.stringMatching(
            /Google returned no access token for the file that credentials names: .*ENOENT/,
          ),
        }),
      );
    } finally {
      await own.close();
    }
  });

  test('an identity without rights in a project is told with what to do', async () => {
    const refusing = await startUpstream((_request, response) => {
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end('{"error":{"code":403,"message":"Permission denied.","status":"PERMISSION_DENIED"}}');
    });
    const own = await startGateway({
      channels: [
        vertex({
          project: 'my-project',
          location: 'europe-west4',
          credentials: {
            type: 'external_account',
            audience:
              '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/p',
            subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
            token_url: `${identities.url}/sts`,
            credential_source: { url: `${identities.url}/own-token` },
          },
          models: ['gemini-3-pro'],
          baseUrl: refusing.url,
        }),
      ],
    });
    try {
      const failed = await sendChat(own, 'gemini-3-pro');
      expect(failed.status).toBe(502);
      expect(refusing.requests[0]?.headers['authorization']).toBe('Bearer token-1');
      const lines = own.lines.map((line) => JSON.stringify(line)).join('\n');
      expect(lines).toMatch(
        /Google Vertex AI in europe-west4 refused the identity of the channel \(status 403\)\. Give it the role Vertex AI User on the project my-project/,
      );
      expect(lines).not.toContain('token-1');
    } finally {
      await own.close();
      await refusing.close();
    }
  });

  test('a gateway without clouds loads none of their packages', async () => {
    const { execFileSync } = await import('node:child_process');
    const loaded = execFileSync(
      process.execPath,
      [
        '--conditions=sluice-source',
        '--input-type=module',
        '-e',
        `import { createRequire } from 'node:module';
         await import(${JSON.stringify(new URL('../../channels/vertex/index.ts', import.meta.url).href)});
         await import(${JSON.stringify(new URL('../../channels/azure-openai.ts', import.meta.url).href)});
         const require = createRequire(import.meta.url);
         console.log(Object.keys(require.cache).filter((file) => /@azure|google-auth|gaxios/.test(file)).length);`,
      ],
      { cwd: import.meta.dirname, encoding: 'utf8' },
    );
    expect(loaded.trim()).toBe('0');
  });
});
