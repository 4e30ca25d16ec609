import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Secrets } from '../../../core/config/secrets/index.ts';
import { openSources } from '../../../core/config/secrets/open.ts';
import { parseSecretReference } from '../../../core/settings/secret-reference.ts';
import type { PluginEntry } from '../../../core/sdk/define.ts';
import aws from '../../../plugins/secrets-aws.ts';
import azure from '../../../plugins/secrets-azure.ts';
import google from '../../../plugins/secrets-google.ts';
import vault from '../../../plugins/secrets-vault/index.ts';
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
      const reference = parseSecretReference(text);
      if (reference === undefined) throw new Error(`${text} is no reference.`);
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as the fakes count requests
      const got = await secrets.get(reference);
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
    expect(manager.asked('auth/approle/login')).toBe(1);
    const [login = ''] = [...manager.tokens.keys()].slice(-1);
    manager.tokens.delete(login);
    expect(await source?.read({ name: 'secret/a', signal })).toEqual({ key: 'vault-secret-a' });
    expect(manager.asked('auth/approle/login')).toBe(2);
    await opened.close();
    expect(manager.tokens.size).toBe(before);
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
    await eventually(() => expect(manager.asked('auth/token/renew-self')).toBeGreaterThan(0));
    await opened.close();
  });

  test('is not asked where the mount ends when the version of its engines is known', async () => {
    const auth = { kind: 'approle', roleId, secretId } as const;
    const before = manager.asked('sys/');
    expect(await read(vault({ url: manager.url, auth, kv: 2 }), 'vault:secret/a')).toEqual([
      'vault-secret-a',
    ]);
    expect(manager.asked('sys/')).toBe(before);
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
      'there is no such secret: check its name and its version, or create it',
      'AWS Secrets Manager in eu-central-1 answered 400 AccessDeniedException: allow secretsmanager:GetSecretValue, and kms:Decrypt where the secret has a key of its own',
      'the secret is binary and no text',
      'the secret is no JSON object, so that it has no fields',
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
      'there is no such secret: check its name and its version, or create it',
      'Google Secret Manager answered 403 PERMISSION_DENIED: give the account the role Secret Manager Secret Accessor for this secret',
      'Google Secret Manager answered 400 FAILED_PRECONDITION: the version may be disabled or destroyed: enable it, or name another one',
      'Google Secret Manager sent a secret whose checksum is not that of its data',
      'a secret of Google is named SECRET or projects/PROJECT/secrets/SECRET',
    ]);
    writeFileSync(subject, 'another-token');
    const [none] = await read(entry(), 'google:one');
    expect(none).toMatch(/^Google gave no access token \(.*\): check "credentials"/);
    writeFileSync(subject, 'token-of-the-pod');
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
    expect(none).toBe('there is no such secret: check its name and its version, or create it');
    expect(denied).toContain('Azure Key Vault mine answered 403 ForbiddenByRbac: give the identity the role');
    expect(unnamed).toBe('the reference names no vault: set "vault" of the plugin, or write VAULT/SECRET');
    expect(odd).toBe('the version of a secret of Azure is an id of 32 characters');
    manager.failing = [429, { error: { code: 'Throttled', message: 'Too many requests' } }];
    const [limited] = await read(entry(), 'azure:mine/openai');
    expect(limited).toContain('429 Throttled: the vault limits requests');
    manager.failing = undefined;
  });
});
