import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Secrets } from '../../../core/config/secrets/index.ts';
import { openSources } from '../../../core/config/secrets/open.ts';
import { ownSources } from '../../../core/config/secrets/sources.ts';
import { createLog, hideSecret, maskSecrets } from '../../../core/log.ts';
import { HandedSecrets } from '../../../core/processes/handed-secrets.ts';
import { defineSecrets } from '../../../core/sdk/author/define-secrets.ts';
import type { SecretTools } from '../../../core/sdk/author/secrets.ts';
import { parseSecretReference, type SecretReference } from '../../../core/settings/secret-reference.ts';
import type { PluginEntry } from '../../../core/sdk/define.ts';
import aws from '../../../plugins/secrets-aws.ts';
import azure from '../../../plugins/secrets-azure.ts';
import google from '../../../plugins/secrets-google.ts';
import type { SendToVault } from '../../../plugins/secrets-vault/sender.ts';
import vault from '../../../plugins/secrets-vault/index.ts';
import { vaultToken } from '../../../plugins/secrets-vault/token.ts';
import { eventually } from '../../support/eventually.ts';
import {
  awsKeys,
  startAws,
  startAzure,
  startGoogle,
  type FakeCloud,
} from '../../support/secret-managers/clouds.ts';
import { jwt, roleId, secretId, startVault, type FakeVault } from '../../support/secret-managers/vault.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

function referenceTo(text: string): SecretReference {
  const reference = parseSecretReference(text);
  if (reference === undefined) throw new Error(`${text} is no reference.`);
  return reference;
}

/** Reason for an answer of another form. No part of the answer is in it, because that may be the secret. */
const otherForm = 'the secret manager sent an unexpected response';

/** Reads a reference with a plugin as a gateway would. Returns the text, or why there is none. */
async function read(entry: PluginEntry, ...references: readonly string[]): Promise<readonly string[]> {
  const problems: string[] = [];
  const opened = await openSources([entry], 'gateway.config.ts', {
    timeout: 5_000,
    log: undefined,
    problems,
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const secrets = new Secrets({ sources: opened.sources, timeout: 5_000, close: opened.close });
  try {
    const texts: string[] = [];
    for (const text of references) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as the fakes count requests
      const got = await secrets.get(referenceTo(text));
      texts.push('text' in got ? got.text : got.problem);
    }
    return texts;
  } finally {
    await secrets.close();
  }
}

afterAll(() => vi.unstubAllEnvs());

describe('Vault', () => {
  let manager: FakeVault;
  beforeAll(async () => {
    manager = await startVault();
    manager.secrets.set('secret/a', [{ key: 'vault-secret-a' }]);
  });
  afterAll(() => manager?.close());

  test('is asked with the token of an AppRole, which is fetched anew when it is refused, and left to nobody', async () => {
    const auth = { kind: 'approle', roleId, secretId } as const;
    const before = manager.tokens.size;
    const problems: string[] = [];
    const opened = await openSources([vault({ url: manager.url, auth })], 'x', {
      timeout: 5_000,
      log: undefined,
      problems,
    });
    const source = opened.sources.get('vault');
    const signal = AbortSignal.timeout(5_000);
    expect(await source?.read({ name: 'secret/a', signal })).toEqual({ key: 'vault-secret-a' });
    expect(manager.countRequests('auth/approle/login')).toBe(1);
    const [login = ''] = [...manager.tokens.keys()].slice(-1);
    manager.tokens.delete(login);
    expect(await source?.read({ name: 'secret/a', signal })).toEqual({ key: 'vault-secret-a' });
    expect(manager.countRequests('auth/approle/login')).toBe(2);
    await opened.close();
    expect(manager.tokens.size).toBe(before);
  });

  test('is asked for one login, however often a policy forbids a secret', async () => {
    const auth = { kind: 'approle', roleId, secretId } as const;
    const before = { logins: manager.countRequests('auth/approle/login'), tokens: manager.tokens.size };
    const options = { timeout: 5_000, log: undefined, problems: [] };
    const { sources, close } = await openSources([vault({ url: manager.url, auth })], 'x', options);
    const secrets = new Secrets({ sources, timeout: 5_000, close });
    manager.secretIdUses = 1;
    manager.forbidden.add('secret/data/a');
    expect(await secrets.get(referenceTo('vault:secret/a#key'))).toEqual({
      problem: expect.stringContaining('403 (permission denied): let a policy of the token read this path'),
    });
    secrets.built();
    await secrets.refresh();
    await secrets.refresh();
    expect(secrets.standing().failing[0]?.reason).toContain('403 (permission denied)');
    expect(manager.countRequests('auth/approle/login') - before.logins).toBe(1);
    manager.forbidden.clear();
    expect(await secrets.refresh()).toEqual(['vault:secret/a#key']);
    await secrets.close();
    manager.secretIdUses = Infinity;
    expect(manager.tokens.size).toBe(before.tokens);
  });

  test('is asked for few logins where no policy lets tokens look themselves up', async () => {
    const auth = { kind: 'approle', roleId, secretId } as const;
    const before = {
      logins: manager.countRequests('auth/approle/login'),
      tokens: new Set(manager.tokens.keys()),
    };
    const logins = (): number => manager.countRequests('auth/approle/login') - before.logins;
    const options = { timeout: 5_000, log: undefined, problems: [] };
    const { sources, close } = await openSources([vault({ url: manager.url, auth })], 'x', options);
    const secrets = new Secrets({ sources, timeout: 5_000, close });
    for (const path of ['auth/token/lookup-self', 'secret/data/no']) manager.forbidden.add(path);
    await Promise.all(
      ['vault:secret/no#key', 'vault:secret/a#key'].map((text) => secrets.get(referenceTo(text))),
    );
    secrets.built();
    await secrets.refresh();
    await secrets.refresh();
    expect(logins()).toBe(2);
    // A token that has ended is still replaced, for secrets that may be read.
    for (const token of manager.tokens.keys()) if (!before.tokens.has(token)) manager.tokens.delete(token);
    await secrets.refresh();
    expect(logins()).toBe(3);
    expect(secrets.standing().failing.map(({ reference }) => reference)).toEqual(['vault:secret/no#key']);
    manager.forbidden.clear();
    await secrets.close();
    expect(new Set(manager.tokens.keys())).toEqual(before.tokens);
  });

  test('is left no token of a login that runs while the gateway stops', async () => {
    const answer = Promise.withResolvers<object>();
    const revoked: unknown[] = [];
    const sendToVault: SendToVault = async ({ path, token }) => {
      if (path === 'auth/approle/login') return answer.promise;
      if (path === 'auth/token/revoke-self') revoked.push(token);
      return undefined;
    };
    const closers: (() => unknown)[] = [];
    const tools = { onClose: (job: () => unknown) => void closers.push(job) } as unknown as SecretTools;
    const auth = { kind: 'approle', roleId, secretId, mount: 'approle' } as const;
    const request = { name: 'secret/a', signal: AbortSignal.timeout(5_000) };
    const shown = vaultToken(auth, sendToVault, tools).use(request, async (token) => token);
    const closed = Promise.all(closers.map((job) => job()));
    answer.resolve({ auth: { client_token: 'token-of-a-late-login', lease_duration: 60 } });
    await closed;
    expect(await shown).toBe('token-of-a-late-login');
    expect(revoked).toEqual(['token-of-a-late-login']);
  });

  test('is asked with the service account of a pod, in a namespace', async () => {
    const tokenFile = join(temporaryFolder(), 'token');
    writeFileSync(tokenFile, `${jwt}\n`);
    manager.namespace = 'team';
    const auth = { kind: 'kubernetes', role: 'gateway', tokenFile } as const;
    const options = { url: manager.url, namespace: 'team', auth };
    expect(await read(vault(options), 'vault:secret/a#key')).toEqual(['vault-secret-a']);
    const [other] = await read(vault({ ...options, namespace: 'other' }), 'vault:secret/a#key');
    expect(other).toContain('403 (permission denied)');
    const [none] = await read(
      vault({ ...options, auth: { ...auth, tokenFile: '/nowhere/at/all' } }),
      'vault:secret/a#key',
    );
    expect(none).toBe(
      'the file /nowhere/at/all with the token of the service account cannot be read (ENOENT)',
    );
    manager.namespace = undefined;
  });

  test('renews a given token as long as it may be renewed', async () => {
    manager.tokens.set('token-to-be-renewed', { ttl: 2, renewable: true });
    const auth = { kind: 'token', token: 'token-to-be-renewed' } as const;
    const opened = await openSources([vault({ url: manager.url, auth })], 'x', {
      timeout: 5_000,
      log: undefined,
      problems: [],
    });
    await opened.sources.get('vault')?.read({ name: 'secret/a', signal: AbortSignal.timeout(5_000) });
    await eventually(() => expect(manager.countRequests('auth/token/renew-self')).toBeGreaterThan(0));
    await opened.close();
  });

  test('is not asked where the mount ends when the version of its engines is known', async () => {
    const auth = { kind: 'approle', roleId, secretId } as const;
    const before = manager.countRequests('sys/');
    expect(await read(vault({ url: manager.url, auth, kv: 2 }), 'vault:secret/a')).toEqual([
      'vault-secret-a',
    ]);
    expect(manager.countRequests('sys/')).toBe(before);
  });
});

describe('AWS Secrets Manager', () => {
  let manager: FakeCloud;
  beforeAll(async () => {
    manager = await startAws();
    manager.secrets.set('prod/openai', '{"key":"aws-secret-one","key2":"aws-secret-two"}');
    manager.secrets.set('prod/openai@AWSPREVIOUS', '{"key":"aws-secret-old"}');
    const id = '01234567-89ab-cdef-0123-456789abcdef';
    manager.secrets.set(`prod/openai@${id}`, '{"key":"aws-secret-by-id"}');
    manager.secrets.set('arn:aws:secretsmanager:us-east-1:1:secret:x-AbCdEf', 'aws-secret-by-arn');
    manager.secrets.set('bytes', Buffer.from('aws-secret-bytes'));
    manager.secrets.set('binary', Buffer.from([0xff, 0xfe, 0]));
  });
  afterAll(() => manager?.close());
  const entry = (options: object = {}) =>
    aws({ region: 'eu-central-1', credentials: awsKeys, endpoint: manager.url, ...options });

  test('is asked with signed requests for names, ARNs, stages, ids of versions, fields and bytes', async () => {
    expect(
      await read(
        entry(),
        'aws:prod/openai#key',
        'aws:prod/openai#key2',
        'aws:prod/openai?version=AWSPREVIOUS#key',
        'aws:prod/openai?version=01234567-89ab-cdef-0123-456789abcdef#key',
        'aws:arn:aws:secretsmanager:us-east-1:1:secret:x-AbCdEf',
        'aws:bytes',
      ),
    ).toEqual([
      'aws-secret-one',
      'aws-secret-two',
      'aws-secret-old',
      'aws-secret-by-id',
      'aws-secret-by-arn',
      'aws-secret-bytes',
    ]);
  });

  test('refuses, and it is told why and what to do', async () => {
    expect(await read(entry(), 'aws:none', 'aws:denied/x', 'aws:binary', 'aws:bytes#key')).toEqual([
      'the secret does not exist: check its name and version, or create it',
      'AWS Secrets Manager in eu-central-1 returned status 400 AccessDeniedException: allow secretsmanager:GetSecretValue, and kms:Decrypt where the secret has a key of its own',
      'the secret is binary, not text',
      'the secret is not a JSON object and has no fields',
    ]);
    const wrong = { credentials: { ...awsKeys, secretAccessKey: 'another-secret-access-key' } };
    const [signature] = await read(entry(wrong), 'aws:bytes');
    expect(signature).toContain('400 InvalidSignatureException: check the secret access key, and the clock');
    manager.failing = [
      400,
      { __type: 'com.amazonaws.secretsmanager#ThrottlingException', message: 'Rate exceeded' },
    ];
    const [limited] = await read(entry(), 'aws:bytes');
    expect(limited).toContain('ThrottlingException: read secrets less often');
    manager.failing = [200, { SecretString: { key: 'aws-secret-lie' } }];
    const [lie] = await read(entry(), 'aws:bytes');
    expect(lie).not.toContain('aws-secret');
    manager.failing = [200, 'aws-secret-plain'];
    expect(await read(entry(), 'aws:bytes')).toEqual([otherForm]);
    manager.failing = undefined;
  });

  test('is asked with what its own search finds', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', awsKeys.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', awsKeys.secretAccessKey);
    expect(await read(entry({ credentials: undefined }), 'aws:bytes')).toEqual(['aws-secret-bytes']);
  });
});

describe('Google Secret Manager', () => {
  let manager: FakeCloud;
  let credentials: string;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  const subject = join(folder, 'subject');
  beforeAll(async () => {
    manager = await startGoogle();
    manager.secrets.set('projects/p/secrets/one', 'google-secret-one');
    manager.secrets.set('projects/p/secrets/one@2', '{"key":"google-secret-two"}');
    manager.secrets.set('projects/p/secrets/broken', 'google-secret-broken');
    writeFileSync(subject, 'token-of-the-pod');
    credentials = JSON.stringify({
      type: 'external_account',
      audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${manager.url}/token`,
      credential_source: { file: subject },
    });
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await manager?.close();
  });
  const entry = (options: object = {}) =>
    google({ project: 'p', credentials, endpoint: manager.url, ...options });

  test("is asked with a token that Google's library got for a workload identity", async () => {
    expect(
      await read(entry(), 'google:one', 'google:projects/p/secrets/one', 'google:one?version=2#key'),
    ).toEqual(['google-secret-one', 'google-secret-one', 'google-secret-two']);
    expect(manager.requests.filter(({ url }) => url === '/token')).toHaveLength(1);
  });

  test('refuses, and it is told why and what to do', async () => {
    expect(
      await read(
        entry(),
        'google:none',
        'google:denied',
        'google:one?version=disabled',
        'google:broken',
        'google:a/b',
      ),
    ).toEqual([
      'the secret does not exist: check its name and version, or create it',
      'Google Secret Manager returned status 403 PERMISSION_DENIED: give the account the role Secret Manager Secret Accessor for this secret',
      'Google Secret Manager returned status 400 FAILED_PRECONDITION: the version may be disabled or destroyed: enable it, or name another one',
      'Google Secret Manager sent a secret whose checksum is not that of its data',
      'a secret of Google is named SECRET or projects/PROJECT/secrets/SECRET',
    ]);
    writeFileSync(subject, 'another-token');
    const [none] = await read(entry(), 'google:one');
    expect(none).toMatch(/^Google returned no access token \(.*\): check "credentials"/);
    writeFileSync(subject, 'token-of-the-pod');
    expect(await read(entry(), 'google:plain')).toEqual([otherForm]);
  });
});

describe('Azure Key Vault', () => {
  let manager: FakeCloud;
  const version = '4387e9f3d6e14c459867679a90fd0f79';
  beforeAll(async () => {
    manager = await startAzure();
    manager.secrets.set('openai', 'azure-secret-one');
    manager.secrets.set(`openai@${version}`, '{"key":"azure-secret-two"}');
    vi.stubEnv('IDENTITY_ENDPOINT', `${manager.url}/msi/token`);
    vi.stubEnv('IDENTITY_HEADER', 'identity-header-of-tests');
  });
  afterAll(() => manager?.close());
  const entry = () => azure({ identity: { kind: 'managed' }, endpoint: manager.url });

  test("is asked with a token that Azure's library got for a managed identity", async () => {
    expect(await read(entry(), 'azure:mine/openai', `azure:mine/openai?version=${version}#key`)).toEqual([
      'azure-secret-one',
      'azure-secret-two',
    ]);
  });

  test('refuses, and it is told why and what to do', async () => {
    const [none, denied, unnamed, odd] = await read(
      entry(),
      'azure:mine/none',
      'azure:mine/denied',
      'azure:openai',
      'azure:mine/openai?version=2',
    );
    expect(none).toBe('the secret does not exist: check its name and version, or create it');
    expect(denied).toContain(
      'Azure Key Vault mine returned status 403 ForbiddenByRbac: give the identity the role',
    );
    expect(unnamed).toBe('the reference names no vault: set "vault" of the plugin, or write VAULT/SECRET');
    expect(odd).toBe('the version of a secret of Azure is an id of 32 characters');
    manager.failing = [429, { error: { code: 'Throttled', message: 'Too many requests' } }];
    const [limited] = await read(entry(), 'azure:mine/openai');
    expect(limited).toContain('429 Throttled: the vault limits requests');
    manager.failing = undefined;
    expect(await read(entry(), 'azure:mine/plain')).toEqual([otherForm]);
  });
});

describe('references', () => {
  const sourceOf = (values: Record<string, string | Error>) => ({
    read: ({ name }: { readonly name: string }) => {
      const value = values[name];
      return value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
    },
  });

  test('that cannot be read at a start count as failing, and ask for a reload once they can be read', async () => {
    const values: Record<string, string | Error> = { a: new Error('it is sealed') };
    const secrets = new Secrets({ sources: new Map([['own', sourceOf(values)]]), timeout: 1_000 });
    await secrets.get(referenceTo('own:a'));
    secrets.built();
    expect(secrets.standing()).toMatchObject({
      references: 1,
      failing: [{ reference: 'own:a', reason: 'it is sealed', isInForce: false }],
    });
    expect(await secrets.refresh()).toEqual([]);
    values['a'] = 'value-of-a';
    expect(await secrets.refresh()).toEqual(['own:a']);
    expect(secrets.standing().failing).toEqual([]);
    expect(secrets.known()).toMatchObject([{ reference: 'own:a', text: 'value-of-a' }]);
  });

  test('with equal values stay masked when one of them rotates', async () => {
    const values = { a: 'first-value-of-a', b: 'value-that-both-have' };
    const secrets = new Secrets({ sources: new Map([['own', sourceOf(values)]]), timeout: 1_000 });
    await Promise.all([secrets.get(referenceTo('own:a')), secrets.get(referenceTo('own:b'))]);
    secrets.built();
    for (const value of ['value-that-both-have', 'last-value-of-a']) {
      values.a = value;
      // oxlint-disable-next-line no-await-in-loop -- one rotation after the other
      await secrets.refresh();
    }
    expect(maskSecrets('value-that-both-have')).toBe('…');
  });

  test('have values that stay masked after a rotation where they are in force or secrets of somebody else, and no longer otherwise', async () => {
    const values = { a: 'value-in-force-of-a' };
    const secrets = new Secrets({ sources: new Map([['own', sourceOf(values)]]), timeout: 1_000 });
    await secrets.get(referenceTo('own:a'));
    secrets.built();
    const literal = 'key-of-another-channel';
    hideSecret(literal);
    for (const value of [literal, 'a-passing-tune', 'value-in-force-of-a', 'a-passing-tune', 'last']) {
      values.a = value;
      // oxlint-disable-next-line no-await-in-loop -- one rotation after the other
      await secrets.refresh();
    }
    expect([literal, 'value-in-force-of-a', 'a-passing-tune'].map((text) => maskSecrets(text))).toEqual([
      '…',
      '…',
      'a-passing-tune',
    ]);
  });

  test('do not have the value of a source with other options', async () => {
    const auth = { kind: 'token', token: 'token-of-the-tests' } as const;
    const opened = await Promise.all(
      ['http://one.example', 'http://two.example'].map((url) =>
        openSources([vault({ url, auth })], 'x', { timeout: 1_000, log: undefined, problems: [] }),
      ),
    );
    const [one = '', two = ''] = opened.map(({ digests }) => digests.get('vault'));
    expect(one).not.toBe(two);
    const handed = new HandedSecrets();
    const value = { reference: 'vault:secret/a', readAt: Date.now() };
    handed.add([{ ...value, source: one, text: 'value-of-one' }]);
    handed.add([{ ...value, source: two, text: 'value-of-two' }]);
    const known = handed.order.secrets ?? [];
    const texts = [one, two, 'other'].map(async (digest) => {
      const sources = new Map([['vault', sourceOf({})]]);
      const secrets = new Secrets({ sources, digests: new Map([['vault', digest]]), known, timeout: 1_000 });
      const got = await secrets.get(referenceTo('vault:secret/a'));
      return 'text' in got ? got.text : undefined;
    });
    expect(await Promise.all(texts)).toEqual(['value-of-one', 'value-of-two', undefined]);
    await Promise.all(opened.map(({ close }) => close()));
  });

  test('to files say why a file cannot be read, and wait for no writer of a pipe', async () => {
    const folder = temporaryFolder();
    const reason = async (name: string): Promise<unknown> =>
      ownSources
        .get('file')
        ?.read({ name: join(folder, name), signal: AbortSignal.timeout(5_000) })
        .catch((error: Error) => error.message);
    writeFileSync(join(folder, 'large'), 'x'.repeat(65 * 1024));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(await Promise.all(['large', 'pipe', '.', 'none'].map(reason))).toEqual([
      'the file is too large: at most 64 KiB',
      'the path is not that of a regular file',
      'the path is not that of a regular file',
      undefined,
    ]);
  });

  test('have sources of which each is closed, also where another one fails', async () => {
    const closed: string[] = [];
    const lines: string[] = [];
    const source = (name: string) =>
      defineSecrets({
        name: `secrets-${name}`,
        source: name,
        open: (_, { onClose }) => {
          onClose(() => {
            closed.push(name);
            throw new Error('it was closed already');
          });
          return sourceOf({});
        },
      });
    const log = createLog('error', { write: (line) => void lines.push(line) });
    const entries = [source('one')(), source('two')()];
    const { close } = await openSources(entries, 'x', { timeout: 1_000, log, problems: [] });
    await close();
    expect(closed).toEqual(['two', 'one']);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('a secret source could not be closed');
  });
});
