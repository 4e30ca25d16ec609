import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entraTokens, type EntraIdentity } from '../../channels/_kit/identity/entra.ts';
import azureFoundry from '../../channels/azure-foundry.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import { voices } from '../flows/_wire.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { ordinary, startIdentities, type Identities } from './_identities.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const identities = await startIdentities();

/** Returns a response of the identity endpoint of a machine. */
const machineToken = (token: string): Identities['answer'] => ({
  status: 200,
  body: {
    access_token: token,
    expires_on: String(Math.floor(Date.now() / 1000) + 3600),
    resource: 'https://cognitiveservices.azure.com',
    token_type: 'Bearer',
  },
});

const formOf = (body: string | undefined): object => Object.fromEntries(new URLSearchParams(body));

/**
 * The token of an identity, or why there is none, in a process of its own: Microsoft's library looks once in a process where the machine's
 * endpoint is, and Node reads once whom it trusts.
 */
async function inItsOwnProcess(
  env: Readonly<Record<string, string>>,
  identity: EntraIdentity = { kind: 'managed' },
): Promise<string> {
  const file = new URL('../../channels/_kit/identity/entra.ts', import.meta.url).href;
  const script = `import { entraTokens } from ${JSON.stringify(file)};
    const ask = entraTokens(${JSON.stringify(identity)}, 'https://cognitiveservices.azure.com/.default');
    console.log(await ask().then(({ token }) => token, (error) => error.message));`;
  const options = ['--conditions=sluice-source', '--input-type=module', '-e', script];
  const { stdout } = await promisify(execFile)(process.execPath, options, {
    cwd: import.meta.dirname,
    env: { PATH: process.env['PATH'], ...env },
  });
  return stdout.trim();
}

describe('Entra ID', () => {
  test('a managed identity is asked where the host says', async () => {
    vi.stubEnv('IDENTITY_ENDPOINT', `${identities.url}/msi/token`);
    vi.stubEnv('IDENTITY_HEADER', 'proof');
    identities.answer = machineToken('token-2');
    const { token } = await entraTokens(
      { kind: 'managed' },
      'https://cognitiveservices.azure.com/.default',
    )();
    expect(token).toBe('token-2');
    expect(identities.requests[0]?.headers['x-identity-header']).toBe('proof');
  });

  /** Answers what goes to Entra ID by the endpoint of this machine. */
  const transport = {
    async sendRequest(request: { readonly url: string; readonly method: string; readonly body?: unknown }) {
      const { pathname } = new URL(request.url);
      const answer = await fetch(identities.url + pathname, {
        method: request.method,
        body: String(request.body),
      });
      const headers = {
        get: () => 'application/json',
        toJSON: () => ({ 'content-type': 'application/json' }),
      };
      return { request, status: answer.status, headers, bodyAsText: await answer.text() };
    },
  } as never;
  const secret = { kind: 'secret', tenant: 'tenant', client: 'client', secret: 'hidden-word' } as const;
  const scope = 'https://cognitiveservices.azure.com/.default';

  test('a client secret is changed for a token', async () => {
    const { token, expiresAtMs } = await entraTokens(secret, scope, transport)();
    expect(token).toBe('token-1');
    expect(expiresAtMs).toBeGreaterThan(Date.now());
    expect(identities.requests.at(-1)?.url).toBe('/tenant/oauth2/v2.0/token');
    expect(formOf(identities.requests.at(-1)?.body)).toMatchObject({
      grant_type: 'client_credentials',
      client_id: 'client',
      client_secret: 'hidden-word',
      scope: expect.stringContaining(scope),
    });
  });

  test('a client secret that has expired is named with what to do, and never shown', async () => {
    identities.answer = {
      status: 401,
      body: {
        error: 'invalid_client',
        error_description: "AADSTS7000222: The provided client secret keys for app 'client' are expired.",
      },
    };
    const failure = await entraTokens({ ...secret, client: 'other' }, scope, transport)().catch(
      (error: unknown) => error,
    );
    expect(String(failure)).toMatch(
      /the client secret in the config.*AADSTS7000222.*whether the secret has expired/,
    );
    expect(String(failure)).not.toContain('hidden-word');
  });

  test('the token of a workload, which stands in a file, is changed for one of Entra ID', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'token'), 'token-of-the-cluster');
    const workload = {
      kind: 'workload',
      tenant: 'tenant',
      client: 'pod',
      tokenFile: join(folder, 'token'),
    };
    expect(await entraTokens(workload as EntraIdentity, scope, transport)()).toMatchObject({
      token: 'token-1',
    });
    expect(formOf(identities.requests.at(-1)?.body)).toMatchObject({
      grant_type: 'client_credentials',
      client_id: 'pod',
      client_assertion: 'token-of-the-cluster',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    });
  });

  test('a token file that is not there is named with what to set', async () => {
    const workload = {
      kind: 'workload',
      tenant: 'tenant',
      client: 'c',
      tokenFile: '/nowhere/token',
    } as const;
    await expect(entraTokens(workload, scope, transport)()).rejects.toThrow(
      /the workload identity: .*\/nowhere\/token.*AZURE_FEDERATED_TOKEN_FILE/,
    );
  });

  test('a machine asks its metadata service, and is told what to do where that gives no token', async () => {
    identities.answer = machineToken('token-of-the-machine');
    const token = await inItsOwnProcess({ AZURE_POD_IDENTITY_AUTHORITY_HOST: identities.url });
    expect(token).toBe('token-of-the-machine');
    const [{ url, headers } = { url: '', headers: {} as Record<string, unknown> }] =
      identities.requests.slice(-1);
    expect(url).toMatch(/^\/metadata\/identity\/oauth2\/token\/?\?/);
    expect(new URL(url, 'http://m').searchParams.get('resource')).toBe('https://cognitiveservices.azure.com');
    expect(headers['metadata']).toBe('true');

    identities.answer = {
      status: 400,
      body: { error: 'invalid_request', error_description: 'Identity not found' },
    };
    expect(await inItsOwnProcess({ AZURE_POD_IDENTITY_AUTHORITY_HOST: identities.url })).toMatch(
      /returned no access token for the managed identity: .*Give this machine a managed identity/,
    );
  });

  describe('of a cloud of one’s own', () => {
    const certificate = fileURLToPath(new URL('../fixtures/tls/certificate.pem', import.meta.url));
    const key = certificate.replace('certificate.pem', 'key.pem');
    const requests: { readonly url: string; readonly body: string }[] = [];
    let authority = '';
    let says: { readonly status: number; readonly body: object } = ordinary;
    const entra = createServer(
      { cert: readFileSync(certificate), key: readFileSync(key) },
      (request, response) => {
        let body = '';
        request.setEncoding('utf8').on('data', (text: string) => (body += text));
        request.on('end', () => {
          const { url = '' } = request;
          requests.push({ url, body });
          const tenant = `${authority}/tenant`;
          const known = {
            issuer: `${tenant}/v2.0`,
            authorization_endpoint: `${tenant}/oauth2/v2.0/authorize`,
            token_endpoint: `${tenant}/oauth2/v2.0/token`,
            jwks_uri: `${tenant}/discovery/v2.0/keys`,
          };
          const answer = url.includes('openid-configuration') ? { status: 200, body: known } : says;
          response
            .writeHead(answer.status, { 'content-type': 'application/json' })
            .end(JSON.stringify(answer.body));
        });
      },
    );
    beforeAll(async () => {
      await new Promise<void>((resolve) => entra.listen(0, '127.0.0.1', resolve));
      authority = `https://localhost:${(entra.address() as AddressInfo).port}`;
    });
    afterAll(() => new Promise((resolve) => entra.close(resolve)));
    const trusted = (): Readonly<Record<string, string>> => ({
      AZURE_AUTHORITY_HOST: authority,
      NODE_EXTRA_CA_CERTS: certificate,
    });

    test('is asked where the environment says, and by that authority of certificates alone', async () => {
      expect(await inItsOwnProcess(trusted(), secret)).toBe('token-1');
      const { url, body } = requests.at(-1) ?? {};
      expect(url).toMatch(/^\/tenant\/oauth2\/v2\.0\/token/);
      expect(formOf(body)).toMatchObject({ client_id: 'client', client_secret: 'hidden-word' });
      const before = requests.length;
      const refused = await inItsOwnProcess({ AZURE_AUTHORITY_HOST: authority }, secret);
      expect(refused).toMatch(/returned no access token for the client secret in the config: .*Check tenant/);
      expect(requests).toHaveLength(before);
    });

    test('says why it refuses a client secret, which is never shown', async () => {
      says = {
        status: 401,
        body: { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret.' },
      };
      const refused = await inItsOwnProcess(trusted(), secret);
      expect(refused).toMatch(/AADSTS7000215.*whether the secret has expired/);
      expect(refused).not.toContain('hidden-word');
    });
  });

  test('an identity that is missing is named with what to set', async () => {
    vi.stubEnv('AZURE_TENANT_ID', '');
    vi.stubEnv('AZURE_FEDERATED_TOKEN_FILE', '');
    await expect(
      entraTokens({ kind: 'workload' }, 'https://cognitiveservices.azure.com/.default')(),
    ).rejects.toThrow(/the workload identity.*AZURE_FEDERATED_TOKEN_FILE/);
  });
});

describe('deployments', () => {
  const id = '/subscriptions/s/resourceGroups/g/providers/Microsoft.CognitiveServices/accounts/mine';
  let upstream: ScriptedUpstream;
  let next = '';
  let status = 200;

  beforeAll(async () => {
    upstream = await startUpstream(({ method, url }, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      if (method === 'POST')
        return void response.end(JSON.stringify(voices['chat-completions'].whole('hello')));
      const deployment = (name: string, provisioningState = 'Succeeded') => ({
        id: `${id}/deployments/${name}`,
        name,
        properties: { provisioningState, model: { format: 'OpenAI', name: 'gpt-4o', version: '1' } },
      });
      response.end(
        JSON.stringify(
          url.includes('$skip')
            ? { value: [deployment('second')] }
            : { value: [deployment('first'), deployment('half', 'Creating')], nextLink: next },
        ),
      );
    });
  });
  afterAll(() => upstream.close());

  async function start(
    kind: typeof azureOpenai | typeof azureFoundry,
    managementUrl = upstream.url,
  ): Promise<TestGateway> {
    vi.stubEnv('IDENTITY_ENDPOINT', `${identities.url}/msi/token`);
    vi.stubEnv('IDENTITY_HEADER', 'proof');
    identities.answer = machineToken('token-of-the-machine');
    upstream.requests.length = 0;
    return startGateway({
      channels: [
        kind({
          id: 'azure',
          baseUrl: upstream.url,
          identity: { kind: 'managed' },
          models: 'discover',
          resourceId: id,
          managementUrl,
        }),
      ],
    });
  }

  const listed = async (gateway: TestGateway): Promise<string[]> => {
    const answer = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    return ((await answer.json()) as { data: { id: string }[] }).data.map((model) => model.id);
  };

  const logTextOf = ({ lines }: TestGateway): string => lines.map((line) => JSON.stringify(line)).join('\n');

  test.each([
    ['azure-openai', azureOpenai],
    ['azure-foundry', azureFoundry],
  ])(
    'of %s that are ready are discovered, page by page, with a token for the manager',
    async (name, kind) => {
      // Each has its own, as the library keeps the tokens of a machine for all who ask.
      const manager = `${upstream.url}/${name}`;
      next = `${manager}${id}/deployments?api-version=2024-10-01&$skip=2`;
      status = 200;
      const gateway = await start(kind, manager);
      try {
        await eventually(async () => expect((await listed(gateway)).toSorted()).toEqual(['first', 'second']));
        expect(upstream.requests[0]).toMatchObject({
          url: `/${name}${id}/deployments?api-version=2024-10-01`,
          headers: { authorization: expect.stringMatching(/^Bearer token-/) },
        });
        const [tokenRequest] = identities.requests;
        expect(new URL(tokenRequest?.url ?? '', 'http://m').searchParams.get('resource')).toBe(manager);
      } finally {
        await gateway.close();
      }
    },
  );

  test('are not asked for at another address, which would see the token', async () => {
    next = 'https://elsewhere.example/page';
    status = 200;
    const gateway = await start(azureOpenai);
    try {
      await eventually(async () =>
        expect(logTextOf(gateway)).toContain('The next page of the list has another host'),
      );
    } finally {
      await gateway.close();
    }
  });

  test('that the identity may not read are told with what to do', async () => {
    status = 403;
    const gateway = await start(azureOpenai);
    try {
      await eventually(async () =>
        expect(logTextOf(gateway)).toMatch(
          /Azure Resource Manager did not list the deployments: .* status 403\. Give the identity a role/,
        ),
      );
    } finally {
      await gateway.close();
    }
  });

  test('need an identity, and the id of a resource', async () => {
    const channel = { baseUrl: upstream.url, key: 'k', models: ['m'] };
    await expect(startGateway({ channels: [azureOpenai({ ...channel, resourceId: id })] })).rejects.toThrow(
      'resourceId needs an identity',
    );
    await expect(
      startGateway({ channels: [azureOpenai({ ...channel, resourceId: 'mine' })] }),
    ).rejects.toThrow('must be the id of a resource');
  });

  test('an identity is shown in place of a key; one without rights on the resource is told with what to do', async () => {
    status = 200;
    vi.stubEnv('IDENTITY_ENDPOINT', `${identities.url}/msi/token`);
    vi.stubEnv('IDENTITY_HEADER', 'proof');
    identities.answer = machineToken('token-of-the-machine');
    const gateway = await startGateway({
      channels: [azureOpenai({ baseUrl: upstream.url, identity: { kind: 'managed' }, models: ['m'] })],
    });
    const sendChat = (): Promise<Response> =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
      });
    upstream.requests.length = 0;
    try {
      expect((await sendChat()).status).toBe(200);
      const seen = upstream.requests[0]?.headers ?? {};
      // The library keeps the token of a machine for all who ask.
      expect(seen).toMatchObject({
        authorization: expect.stringMatching(/^Bearer token-(2|of-the-machine)$/),
      });
      expect(seen).not.toHaveProperty('api-key');
      status = 401;
      expect((await sendChat()).status).toBe(502);
      expect(logTextOf(gateway)).toMatch(
        /Azure refused the identity of the channel \(status 401\)\. Give it the role Cognitive Services OpenAI User/,
      );
      expect(logTextOf(gateway)).not.toMatch(/token-of-the-machine|token-\d/);
    } finally {
      await gateway.close();
    }
  });
});
