import { createPublicKey, generateKeyPairSync, verify, type KeyObject } from 'node:crypto';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import oci from '../../channels/oci/index.ts';
import type { SeenRequest } from '../../core/sdk/testing/provider.ts';
import { voices } from '../flows/_wire.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

type Options = NonNullable<Parameters<typeof oci>[0]>;

const fixture = (name: string): string =>
  readFileSync(new URL(`../fixtures/oci/${name}.pem`, import.meta.url), 'utf8');
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const tenancy = 'ocid1.tenancy.oc1..t';
const user = 'ocid1.user.oc1..u';
const fingerprint = '20:3b:97:13';
const compartment = 'ocid1.compartment.oc1..c';
const key = { kind: 'key', tenancy, user, fingerprint, key: pem } as const;

const tokenUntil = (expires: number): string =>
  ['{"alg":"RS256"}', JSON.stringify({ exp: Math.floor(expires / 1000) }), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');
const hour = 3_600_000;

let folder: string;
let upstream: ScriptedUpstream;
let status = 200;
let responseBody: object | undefined;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-oci-'));
  upstream = await startUpstream((request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    if (request.method === 'GET') return void response.end(JSON.stringify({ items: models }));
    const refusal = { code: 'NotAuthenticated', message: 'The required information was not provided.' };
    const well = responseBody ?? voices['chat-completions'].whole('hello');
    response.end(JSON.stringify(status === 200 ? well : refusal));
  });
});
afterAll(async () => {
  await upstream.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  upstream.requests.length = 0;
  status = 200;
  responseBody = undefined;
  // Nothing of the machine's own is found.
  for (const name of Object.keys(process.env)) if (name.startsWith('OCI_')) vi.stubEnv(name, undefined);
  vi.stubEnv('HOME', folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const gateway of gateways.splice(0)) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await gateway.close();
  }
});

const models = [
  { displayName: 'openai.gpt-oss-120b', type: 'BASE' },
  { displayName: 'meta.llama-3.1-70b', type: 'BASE', timeOnDemandRetired: '2025-01-01T00:00:00.000Z' },
  { displayName: 'xai.grok-4', type: 'BASE', timeOnDemandRetired: '2999-01-01T00:00:00.000Z' },
  { displayName: 'my-own', type: 'CUSTOM' },
];

async function start(options: Options): Promise<TestGateway> {
  const gateway = await startGateway({
    channels: [oci({ baseUrl: `${upstream.url}/openai/v1`, compartment, ...options })],
  });
  gateways.push(gateway);
  return gateway;
}

const sendChat = (at: TestGateway): Promise<Response> =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'openai.gpt-oss-120b', messages: [{ role: 'user', content: 'hi' }] }),
  });

/** Returns the last request of the gateway with the id of its key. Throws when the signature does not match. */
function lastSigned(
  by: KeyObject = publicKey,
  { requests }: ScriptedUpstream = upstream,
): SeenRequest & { readonly keyId: string } {
  const seen = requests.findLast(({ method }) => method === 'POST');
  if (seen === undefined) throw new Error('Nothing was asked.');
  const [, names = '', keyId = '', signature = ''] =
    /^Signature version="1",headers="(.*)",keyId="(.*)",algorithm="rsa-sha256",signature="(.*)"$/.exec(
      seen.headers.authorization ?? '',
    ) ?? [];
  expect(names).toBe('date (request-target) host content-length content-type x-content-sha256');
  const text = names
    .split(' ')
    .map((name) =>
      name === '(request-target)' ? `${name}: post ${seen.url}` : `${name}: ${String(seen.headers[name])}`,
    )
    .join('\n');
  expect(verify('RSA-SHA256', Buffer.from(text), by, Buffer.from(signature, 'base64'))).toBe(true);
  return { ...seen, keyId };
}

function profile(name: string, entries: Readonly<Record<string, string>>): string {
  const file = join(folder, 'config');
  const lines = Object.entries(entries).map(([entry, value]) => `${entry} = ${value}`);
  writeFileSync(file, `# mine\n[${name}]\n${lines.join('\n')}\n`);
  return file;
}

function keyFile(): string {
  const file = join(folder, 'key.pem');
  writeFileSync(file, pem);
  return file;
}

describe('requests', () => {
  test('are signed with a key of the config, and name the compartment that pays', async () => {
    const project = 'ocid1.generativeaiproject.oc1.iad.p';
    expect((await sendChat(await start({ identity: key, project }))).status).toBe(200);
    expect(lastSigned()).toMatchObject({
      url: '/openai/v1/chat/completions',
      keyId: `${tenancy}/${user}/${fingerprint}`,
      headers: {
        'opc-compartment-id': compartment,
        'openai-project': project,
        'content-type': 'application/json',
      },
    });
  });

  test('show an API key of the service as it is', async () => {
    const gateway = await startGateway({
      channels: [oci({ baseUrl: `${upstream.url}/20231130/actions/v1`, key: 'sk-oci-0123456789' })],
    });
    gateways.push(gateway);
    expect((await sendChat(gateway)).status).toBe(200);
    expect(upstream.requests[0]).toMatchObject({
      url: '/20231130/actions/v1/chat/completions',
      headers: { authorization: 'Bearer sk-oci-0123456789' },
    });
  });

  test('go to the addresses of the region: one for identities, one for API keys', async () => {
    const seen: string[] = [];
    const http = { send: (_call: unknown, { url }: { url: string }) => (seen.push(url), { status: 200 }) };
    const request = {
      operation: 'chat',
      path: '/chat/completions',
      query: {},
      headers: {},
      body: '{}',
      stream: false,
    };
    for (const [options, keys] of [
      [{ identity: key, compartment }, []],
      [{}, ['k']],
    ] as const) {
      const spec = oci.spec.options?.parse({ region: 'us-chicago-1', ...options });
      const parts = oci.spec.setup({ ...spec } as never, { http, keys, log: { error() {} } } as never);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await parts.open({} as never, request as never);
    }
    const host = 'https://inference.generativeai.us-chicago-1.oci.oraclecloud.com';
    expect(seen).toEqual([
      `${host}/openai/v1/chat/completions`,
      `${host}/20231130/actions/v1/chat/completions`,
    ]);
  });

  test('are signed with a profile of the configuration file', async () => {
    const file = profile('WORK', {
      user,
      tenancy,
      fingerprint,
      key_file: '~/key.pem',
      region: 'us-chicago-1',
    });
    keyFile();
    await sendChat(await start({ identity: { kind: 'profile', file, name: 'WORK' } }));
    expect(lastSigned().keyId).toBe(`${tenancy}/${user}/${fingerprint}`);
  });

  test('are signed with the DEFAULT profile of the file that OCI_CONFIG_FILE names, where nothing else is said', async () => {
    vi.stubEnv('OCI_CONFIG_FILE', profile('DEFAULT', { user, tenancy, fingerprint, key_file: keyFile() }));
    await sendChat(await start({}));
    expect(lastSigned().keyId).toBe(`${tenancy}/${user}/${fingerprint}`);
  });

  test('are signed with a session of a profile', async () => {
    const token = tokenUntil(Date.now() + hour);
    writeFileSync(join(folder, 'token'), `${token}\n`);
    const file = profile('S', { key_file: keyFile(), security_token_file: join(folder, 'token') });
    await sendChat(await start({ identity: { kind: 'profile', file, name: 'S' } }));
    expect(lastSigned().keyId).toBe(`ST$${token}`);
  });

  test('are signed for the resource that Functions and containers are', async () => {
    const token = tokenUntil(Date.now() + hour);
    writeFileSync(join(folder, 'rpst'), token);
    vi.stubEnv('OCI_RESOURCE_PRINCIPAL_VERSION', '2.2');
    vi.stubEnv('OCI_RESOURCE_PRINCIPAL_RPST', join(folder, 'rpst'));
    vi.stubEnv('OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM', pem);
    await sendChat(await start({ identity: { kind: 'resource' } }));
    expect(lastSigned().keyId).toBe(`ST$${token}`);
  });

  test('that were refused are signed anew, with what the file says by then', async () => {
    const file = profile('DEFAULT', { user, tenancy, fingerprint, key_file: keyFile() });
    const gateway = await start({ identity: { kind: 'profile', file } });
    status = 401;
    expect((await sendChat(gateway)).status).toBe(502);
    profile('DEFAULT', { user: `${user}2`, tenancy, fingerprint, key_file: keyFile() });
    status = 200;
    await eventually(async () => expect((await sendChat(gateway)).status).toBe(200));
    expect(lastSigned().keyId).toContain(`${user}2`);
  });
});

describe('in Oracle’s own words, signed', () => {
  const post = async (path: string, body: object): Promise<unknown> => {
    const gateway = await start({ identity: key });
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
    return answer.json();
  };

  test('texts are embedded', async () => {
    responseBody = {
      id: 'e',
      embeddings: [
        [0.5, 1],
        [2, 3],
      ],
      modelVersion: '4',
      usage: { promptTokens: 6, totalTokens: 6 },
    };
    expect(
      await post('/v1/embeddings', { model: 'cohere.embed-v4.0', input: ['a', 'b'], dimensions: 256 }),
    ).toMatchObject({ data: [{ embedding: [0.5, 1] }, { embedding: [2, 3] }], usage: { prompt_tokens: 6 } });
    const { url, body } = lastSigned();
    expect(url).toBe('/20231130/actions/embedText');
    expect(JSON.parse(String(body))).toEqual({
      compartmentId: compartment,
      servingMode: { servingType: 'ON_DEMAND', modelId: 'cohere.embed-v4.0' },
      inputs: ['a', 'b'],
      inputType: 'SEARCH_DOCUMENT',
      outputDimensions: 256,
    });
  });

  test('documents are ranked', async () => {
    responseBody = {
      id: 'r',
      documentRanks: [
        { index: 1, relevanceScore: 0.9 },
        { index: 0, relevanceScore: 0.1 },
      ],
    };
    const request = { model: 'cohere.rerank.3-5', query: 'q', documents: ['x', 'y'], top_n: 5 };
    expect(await post('/v1/rerank', request)).toMatchObject({
      results: [
        { index: 1, relevance_score: 0.9 },
        { index: 0, relevance_score: 0.1 },
      ],
    });
    const { url, body } = lastSigned();
    expect(url).toBe('/20231130/actions/rerankText');
    expect(JSON.parse(String(body))).toEqual({
      compartmentId: compartment,
      servingMode: { servingType: 'ON_DEMAND', modelId: 'cohere.rerank.3-5' },
      input: 'q',
      documents: ['x', 'y'],
      topN: 2,
    });
  });
});

describe('an instance', () => {
  const token = tokenUntil(Date.now() + hour);
  let machine: ScriptedUpstream;
  let federation = 200;

  beforeAll(async () => {
    machine = await startUpstream(({ method, url, headers }, response) => {
      if (method === 'POST') {
        response.writeHead(federation, { 'content-type': 'application/json' });
        return void response.end(
          JSON.stringify(federation === 200 ? { token } : { code: 'NotAuthenticated' }),
        );
      }
      if (headers.authorization !== 'Bearer Oracle') return void response.writeHead(401).end();
      const name = /identity\/(\w+)\.pem$/.exec(url)?.[1] ?? '';
      response.end(fixture(name === 'key' ? 'leaf-key' : 'leaf'));
    });
  });
  afterAll(() => machine.close());
  beforeEach(() => {
    federation = 200;
    machine.requests.length = 0;
    vi.stubEnv('OCI_METADATA_BASE_URL', `${machine.url}/opc/v2/`);
  });

  test('changes its certificate for a token, and signs with a key of its own making', async () => {
    const gateway = await start({ identity: { kind: 'instance', federationUrl: machine.url } });
    expect((await sendChat(gateway)).status).toBe(200);
    expect((await sendChat(gateway)).status).toBe(200);
    const federationRequest = lastSigned(createPublicKey(fixture('leaf')), machine);
    expect(federationRequest.url).toBe('/v1/x509');
    expect(federationRequest.keyId).toMatch(
      /^ocid1\.tenancy\.oc1\.\.example\/fed-x509\/([\dA-F]{2}:){19}[\dA-F]{2}$/,
    );
    const sent = JSON.parse(String(federationRequest.body)) as Record<string, string | string[]>;
    const bare = fixture('leaf').replaceAll(/-----[A-Z ]+-----|\s/g, '');
    expect(sent).toMatchObject({ certificate: bare, purpose: 'DEFAULT', intermediateCertificates: [bare] });
    const session = createPublicKey({
      key: Buffer.from(String(sent['publicKey']), 'base64'),
      type: 'spki',
      format: 'der',
    });
    expect(lastSigned(session).keyId).toBe(`ST$${token}`);
    // One token is for all calls.
    expect(machine.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('whose certificate is refused is named in the log, with what to do', async () => {
    federation = 401;
    const gateway = await start({ identity: { kind: 'instance', federationUrl: machine.url } });
    expect((await sendChat(gateway)).status).toBe(502);
    expect(problemIn(gateway)).toMatch(
      /^OCI credentials could not be had from the instance principal: the federation service failed: .* status 401\. Run on an instance .* dynamic group/,
    );
    expect(JSON.stringify(gateway.lines)).not.toContain('PRIVATE KEY');
  });

  test('that is none is named in the log', async () => {
    vi.stubEnv('OCI_METADATA_BASE_URL', `${upstream.url}/nothing`);
    status = 404;
    const gateway = await start({ identity: { kind: 'instance' } });
    expect((await sendChat(gateway)).status).toBe(502);
    expect(problemIn(gateway)).toMatch(
      /the instance principal: the metadata service failed: .* status 404\./,
    );
  });
});

describe('a pod of a cluster', () => {
  const pemOf = (name: string): string =>
    readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
  const token = tokenUntil(Date.now() + hour);
  const requests: { readonly url: string; readonly authorization: string; readonly body: string }[] = [];
  let cluster: SecureServer;
  let gives = '';

  beforeAll(async () => {
    cluster = createSecureServer({ cert: pemOf('certificate'), key: pemOf('key') }, (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const { url = '', headers } = request;
        requests.push({ url, authorization: headers.authorization ?? '', body });
        response.end(Buffer.from(gives).toString('base64'));
      });
    });
    await new Promise<void>((resolve) => cluster.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => new Promise((resolve) => cluster.close(resolve)));
  beforeEach(() => {
    requests.length = 0;
    gives = JSON.stringify({ token: `ST$${token}` });
    writeFileSync(join(folder, 'token'), 'token-of-the-pod\n');
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '127.0.0.1');
    vi.stubEnv('KUBERNETES_SERVICE_PORT_PROXYMUX', String((cluster.address() as AddressInfo).port));
  });
  // The authority of the cluster, which NODE_EXTRA_CA_CERTS names elsewhere.
  const inPod = (): Promise<TestGateway> =>
    start({
      identity: { kind: 'workload', tokenFile: join(folder, 'token') },
      tls: { ca: pemOf('certificate') },
    });

  test('has the token of its service account changed for one that is bound to a key of its own making', async () => {
    const gateway = await inPod();
    expect((await sendChat(gateway)).status).toBe(200);
    expect((await sendChat(gateway)).status).toBe(200);
    expect(requests).toEqual([
      {
        url: '/resourcePrincipalSessionTokens',
        authorization: 'Bearer token-of-the-pod',
        body: expect.stringMatching(/^\{"podKey":"[\w+/=]+"\}$/) as string,
      },
    ]);
    const { podKey } = JSON.parse(requests[0]?.body ?? '') as { podKey: string };
    const session = createPublicKey({ key: Buffer.from(podKey, 'base64'), type: 'spki', format: 'der' });
    expect(lastSigned(session).keyId).toBe(`ST$${token}`);
  });

  test.each([
    [
      'no cluster',
      () => void vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined),
      'KUBERNETES_SERVICE_HOST is not set',
    ],
    [
      'no service account',
      () => rmSync(join(folder, 'token')),
      'the token of the service account cannot be read',
    ],
    ['a cluster that gives no token', () => void (gives = '{}'), 'the cluster returned no token'],
  ])('%s is named in the log, with what to do', async (_what, undo, sentence) => {
    undo();
    const gateway = await inPod();
    expect((await sendChat(gateway)).status).toBe(502);
    expect(problemIn(gateway)).toMatch(
      new RegExp(
        `^OCI credentials could not be had from the workload identity of the pod: ${sentence}.*NODE_EXTRA_CA_CERTS=`,
      ),
    );
    expect(JSON.stringify(gateway.lines)).not.toContain('token-of-the-pod');
  });
});

/** The sentence of the log about what went wrong. */
const problemIn = ({ lines }: TestGateway): string =>
  lines.map((line) => String((line as { msg?: unknown }).msg)).find((msg) => msg.startsWith('OCI ')) ?? '';

describe('the log says which identity failed and what to set, and nothing secret, when', () => {
  const cases: readonly (readonly [string, () => Options['identity'], RegExp])[] = [
    [
      'there is no configuration file',
      () => ({ kind: 'profile' }),
      /the profile DEFAULT of .*\/\.oci\/config: the file cannot be read \(.*ENOENT\)\. Give user, tenancy/,
    ],
    [
      'the profile is not in it',
      () => ({ kind: 'profile', file: profile('OTHER', {}), name: 'MINE' }),
      /the profile MINE of .*: there is no such profile\./,
    ],
    [
      'an entry is missing',
      () => ({ kind: 'profile', file: profile('DEFAULT', { user, tenancy, key_file: keyFile() }) }),
      /it has no fingerprint\. Give user, tenancy, fingerprint/,
    ],
    [
      'the session has ended',
      () => {
        writeFileSync(join(folder, 'old'), tokenUntil(Date.now() - hour));
        const entries = { key_file: keyFile(), security_token_file: '~/old' };
        return { kind: 'profile', file: profile('DEFAULT', entries) };
      },
      /its session token has ended, 20.*oci session authenticate/,
    ],
    [
      'the key is none',
      () => ({ ...key, key: '-----BEGIN PRIVATE KEY-----\nhidden-word\n-----END PRIVATE KEY-----' }),
      /the key in the config: .*\. Check tenancy, user, fingerprint/,
    ],
    [
      'the passphrase is wrong',
      () => {
        const cipher = { cipher: 'aes-256-cbc', passphrase: 'right' };
        const locked = privateKey.export({ type: 'pkcs8', format: 'pem', ...cipher }).toString();
        return { ...key, key: locked, passphrase: 'hidden-word' };
      },
      /the key in the config: .*\. Check tenancy, user, fingerprint/,
    ],
    [
      'there is no resource',
      () => ({ kind: 'resource' }),
      /the resource principal: OCI_RESOURCE_PRINCIPAL_VERSION is not set\. Set OCI_RESOURCE_PRINCIPAL_VERSION/,
    ],
  ];

  test.each(cases)('%s', async (_name, identity, sentence) => {
    const gateway = await start({ identity: identity() });
    const answer = await sendChat(gateway);
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 502,
      body: { error: { message: 'The channel for this model has no valid credentials.' } },
    });
    expect(problemIn(gateway)).toMatch(sentence);
    const lines = JSON.stringify(gateway.lines);
    expect(lines).not.toContain('hidden-word');
    expect(lines).not.toContain(pem.split('\n')[1]);
    expect(upstream.requests).toEqual([]);
  });

  // Oracle answers 404, NotAuthorizedOrNotFound, where others answer 403.
  test.each([401, 403, 404])('an identity has no rights, and the answer is %i', async (refused) => {
    status = refused;
    const gateway = await start({ identity: key });
    expect((await sendChat(gateway)).status).toBeGreaterThanOrEqual(502);
    expect(problemIn(gateway)).toMatch(
      /^OCI Generative AI refused the identity of the channel \(status 40[134]\)\. .* policy lets it use generative-ai-family/,
    );
  });
});

test('models that can be asked on demand are discovered', async () => {
  const gateway = await start({ identity: key, models: 'discover' });
  await eventually(async () => {
    const answer = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    const { data } = (await answer.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id).toSorted()).toEqual(['openai.gpt-oss-120b', 'xai.grok-4']);
  });
  const list = upstream.requests.find(({ method }) => method === 'GET');
  expect(list?.url).toBe(
    `/20231130/models?compartmentId=${compartment}&capability=CHAT&capability=TEXT_EMBEDDINGS&capability=TEXT_RERANK&lifecycleState=ACTIVE`,
  );
  expect(list?.headers.authorization).toContain('headers="date (request-target) host"');
});

test.each([
  [{ identity: key, compartment }, 'region is missing'],
  [{ region: 'us-chicago-1', identity: key }, 'compartment is missing'],
  [{ region: 'us-chicago-1', identity: key, compartment, key: 'k' }, '"key" and "identity" are both set'],
] as const)(
  'a channel that lacks something is refused when it is configured: %#',
  async (options, sentence) => {
    await expect(startGateway({ channels: [oci(options)] })).rejects.toThrow(sentence);
  },
);
