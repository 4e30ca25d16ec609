import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AwsIdentity, type AwsSource } from '../../channels/_kit/identity/aws.ts';
import { createLog } from '../../core/log.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

let folder: string;
let service: ScriptedUpstream | undefined;
let lines: { link?: string; msg?: string }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-aws-'));
  lines = [];
  // Nothing of the machine's own is found.
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) vi.stubEnv(name, undefined);
  vi.stubEnv('HOME', folder);
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'));
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'credentials'));
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await service?.close();
  service = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function identity(source: Partial<AwsSource> = {}): AwsIdentity {
  const log = createLog('debug', {
    write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]),
  });
  return new AwsIdentity({ region: 'us-east-1', ...source }, log);
}

type Script = Parameters<typeof startUpstream>[0];

async function serve(script: Script): Promise<ScriptedUpstream> {
  return (service = await startUpstream(script));
}

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

/** Returns a response of the token service. */
function tokenReply(action: string, expires = inAnHour()): string {
  return `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials>
<AccessKeyId>ASIA-${action}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>${expires}</Expiration></Credentials></${action}Result></${action}Response>`;
}

const xml = { 'content-type': 'text/xml' };
const json = { 'content-type': 'application/json' };

describe('the default chain finds', () => {
  test('the environment', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAENV');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
    vi.stubEnv('AWS_SESSION_TOKEN', 'token');
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'AKIAENV', sessionToken: 'token' });
  });

  test('a profile of the shared files', async () => {
    writeFileSync(
      join(folder, 'credentials'),
      '[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key = s\n[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = s\n',
    );
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'AKIADEFAULT' });
    expect(await identity({ profile: 'work' }).credentials()).toMatchObject({ accessKeyId: 'AKIAWORK' });
  });

  test('a login by SSO', async () => {
    const sso = await serve((request, response) => {
      expect(request.url).toContain('/federation/credentials?');
      expect(request.headers['x-amz-sso_bearer_token']).toBe('sso-token');
      response.writeHead(200, json);
      const roleCredentials = {
        accessKeyId: 'ASIASSO',
        secretAccessKey: 'secret',
        sessionToken: 'token',
        expiration: Date.now() + 3_600_000,
      };
      response.end(JSON.stringify({ roleCredentials }));
    });
    vi.stubEnv('AWS_ENDPOINT_URL_SSO', sso.url);
    const start = 'https://example.awsapps.com/start';
    writeFileSync(
      join(folder, 'config'),
      `[default]\nsso_start_url = ${start}\nsso_region = us-east-1\nsso_account_id = 123456789012\nsso_role_name = models\n`,
    );
    const cache = join(folder, '.aws/sso/cache');
    mkdirSync(cache, { recursive: true });
    const name = createHash('sha1').update(start).digest('hex');
    writeFileSync(
      join(cache, `${name}.json`),
      JSON.stringify({
        startUrl: start,
        region: 'us-east-1',
        accessToken: 'sso-token',
        expiresAt: inAnHour(),
      }),
    );
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'ASIASSO' });
  });

  test('a web identity, as pods have one', async () => {
    const sts = await serve((request, response) => {
      const form = new URLSearchParams(request.body.toString());
      expect(form.get('Action')).toBe('AssumeRoleWithWebIdentity');
      expect(form.get('WebIdentityToken')).toBe('pod-token');
      response.writeHead(200, xml);
      response.end(tokenReply('AssumeRoleWithWebIdentity'));
    });
    writeFileSync(join(folder, 'token'), 'pod-token');
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.url);
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', join(folder, 'token'));
    vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/pod');
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'ASIA-AssumeRoleWithWebIdentity' });
  });

  test("a container's endpoint", async () => {
    const container = await serve((request, response) => {
      expect(request.headers.authorization).toBe('container-token');
      response.writeHead(200, json);
      response.end(
        JSON.stringify({ AccessKeyId: 'ASIATASK', SecretAccessKey: 's', Token: 't', Expiration: inAnHour() }),
      );
    });
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${container.url}/creds`);
    vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN', 'container-token');
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'ASIATASK' });
  });

  test("an instance's metadata", async () => {
    const metadata = await serve(({ method, url, headers }, response) => {
      if (method === 'PUT') return void response.end('metadata-token');
      expect(headers['x-aws-ec2-metadata-token']).toBe('metadata-token');
      if (url.endsWith('/security-credentials/')) return void response.end('models-role');
      expect(url).toMatch(/\/security-credentials\/models-role$/);
      response.end(
        JSON.stringify({
          Code: 'Success',
          AccessKeyId: 'ASIAINSTANCE',
          SecretAccessKey: 's',
          Token: 't',
          Expiration: inAnHour(),
        }),
      );
    });
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', undefined);
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', metadata.url);
    expect(await identity().credentials()).toMatchObject({ accessKeyId: 'ASIAINSTANCE' });
  });
});

describe('a role', () => {
  const source = { roleArn: 'arn:aws:iam::123456789012:role/models', externalId: 'partner' };

  beforeEach(() => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAENV');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  });

  test('is assumed with what the chain found', async () => {
    const sts = await serve((request, response) => {
      const form = new URLSearchParams(request.body.toString());
      expect(Object.fromEntries(form)).toMatchObject({
        Action: 'AssumeRole',
        RoleArn: source.roleArn,
        ExternalId: 'partner',
        RoleSessionName: 'sluice',
      });
      expect(request.headers.authorization).toContain('Credential=AKIAENV/');
      response.writeHead(200, xml);
      response.end(tokenReply('AssumeRole'));
    });
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.url);
    expect(await identity(source).credentials()).toMatchObject({ accessKeyId: 'ASIA-AssumeRole' });
  });

  test('that is refused is named in the log, and nothing secret is', async () => {
    const sts = await serve((_request, response) => {
      response.writeHead(403, xml);
      response.end(
        '<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRole with IQoJb3JpZ2luX2VjEMvOrNd8L0aVeryLongSessionToken</Message></Error></ErrorResponse>',
      );
    });
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.url);
    await expect(identity(source).credentials()).rejects.toMatchObject({
      code: 'upstream_error',
      message: 'The channel for this model has no valid credentials.',
    });
    const logText = JSON.stringify(lines);
    expect(logText).toContain('the last link tried was the assumed role (AccessDenied');
    expect(logText).toContain('See that `roleArn` is right');
    expect(logText).not.toContain('IQoJ');
    expect(logText).not.toContain('AKIAENV');
  });
});

describe('credentials', () => {
  /** A container's endpoint whose credentials last so long, in milliseconds; each is another. */
  async function container(lasting: number): Promise<ScriptedUpstream> {
    const running = await serve((_request, response, count) => {
      const Expiration = new Date(Date.now() + lasting).toISOString();
      response.writeHead(200, json);
      response.end(
        JSON.stringify({ AccessKeyId: `ASIA${count}`, SecretAccessKey: 's', Token: 't', Expiration }),
      );
    });
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${running.url}/creds`);
    return running;
  }

  test('are found once for all calls', async () => {
    const { requests } = await container(3_600_000);
    const shared = identity();
    const all = await Promise.all(Array.from({ length: 20 }, () => shared.credentials()));
    await shared.credentials();
    expect(new Set(all.map(({ accessKeyId }) => accessKeyId))).toEqual(new Set(['ASIA1']));
    expect(requests).toHaveLength(1);
  });

  test('are renewed while those that end soon still serve', async () => {
    await container(60_000);
    const shared = identity();
    expect(await shared.credentials()).toMatchObject({ accessKeyId: 'ASIA1' });
    expect(await shared.credentials()).toMatchObject({ accessKeyId: 'ASIA1' });
    await eventually(async () => {
      expect((await shared.credentials()).accessKeyId).not.toBe('ASIA1');
    });
  });

  test('that a provider refused are found anew', async () => {
    await container(3_600_000);
    const shared = identity();
    const refused = await shared.credentials();
    expect(await shared.credentials()).toEqual(refused);
    shared.forget();
    expect((await shared.credentials()).accessKeyId).not.toBe(refused.accessKeyId);
  });
});

test('where nothing is found the log says which link was the last, and what to set', async () => {
  await expect(identity().credentials()).rejects.toThrow('no valid credentials');
  expect(lines).toHaveLength(1);
  expect(lines[0]?.msg).toMatch(
    /^AWS credentials could not be found: the last link tried was the instance \(CredentialsProviderError: .*Give the instance a role, or set other credentials\.$/s,
  );
});

test('a profile that is not there is told as such', async () => {
  vi.stubEnv('AWS_PROFILE', 'nowhere');
  await expect(identity().credentials()).rejects.toThrow('no valid credentials');
  expect(lines[0]?.msg).toContain('Could not');
});

describe('the sentence in the log names the link that failed, and what to set, and nothing secret:', () => {
  const secretWord = 'SECRETwJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY';
  const profile = (entries: readonly string[], name = 'config'): void =>
    writeFileSync(join(folder, name), `[default]\n${entries.join('\n')}\n`);
  const start = 'https://example.awsapps.com/start';
  const sso = (): void =>
    profile([
      `sso_start_url = ${start}`,
      'sso_region = us-east-1',
      'sso_account_id = 123456789012',
      'sso_role_name = models',
    ]);
  const login = (expiresAt: string): void => {
    const cache = join(folder, '.aws/sso/cache');
    mkdirSync(cache, { recursive: true });
    const name = createHash('sha1').update(start).digest('hex');
    const token = { startUrl: start, region: 'us-east-1', accessToken: secretWord, expiresAt };
    writeFileSync(join(cache, `${name}.json`), JSON.stringify(token));
  };
  const refusing = async (variable: string, status: number, answer: string, path = ''): Promise<void> => {
    const { url } = await serve((_request, response) => {
      response.writeHead(status, answer.startsWith('<') ? xml : json).end(answer);
    });
    vi.stubEnv(variable, url + path);
  };
  const denied = (action: string): string =>
    `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:${action} with ${secretWord}</Message></Error></ErrorResponse>`;
  const webIdentity = (file: string): void => {
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', file);
    vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/pod');
  };
  const instance = async (script: Script): Promise<void> => {
    const { url } = await serve(script);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', undefined);
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', url);
  };

  const cases: readonly (readonly [string, () => void | Promise<void>, RegExp])[] = [
    [
      'half of the keys in the environment',
      () => vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIAHALF'),
      /what is set up is the environment .*Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/s,
    ],
    ['nobody has logged in by SSO', sso, /SSO.*aws sso login/s],
    [
      'a login by SSO that has ended',
      () => {
        sso();
        login(new Date(Date.now() - 3_600_000).toISOString());
      },
      /SSO.*expired.*aws sso login/s,
    ],
    [
      'a login by SSO without that role',
      async () => {
        sso();
        login(inAnHour());
        await refusing('AWS_ENDPOINT_URL_SSO', 403, '{"message":"No access"}');
      },
      /SSO.*aws sso login/s,
    ],
    [
      'a token file of a pod that is not there',
      () => webIdentity('/nowhere/token'),
      /web identity.*ENOENT.*AWS_WEB_IDENTITY_TOKEN_FILE/s,
    ],
    [
      'a role that does not trust the pod',
      async () => {
        writeFileSync(join(folder, 'token'), secretWord);
        webIdentity(join(folder, 'token'));
        await refusing('AWS_ENDPOINT_URL_STS', 403, denied('AssumeRoleWithWebIdentity'));
      },
      /web identity \(AccessDenied.*the role trusts the provider/s,
    ],
    [
      'a token of a pod that has ended',
      async () => {
        writeFileSync(join(folder, 'token'), secretWord);
        webIdentity(join(folder, 'token'));
        const expired = denied('AssumeRoleWithWebIdentity').replace('AccessDenied', 'ExpiredTokenException');
        await refusing('AWS_ENDPOINT_URL_STS', 400, expired);
      },
      /web identity \(ExpiredToken.*AWS_WEB_IDENTITY_TOKEN_FILE/s,
    ],
    [
      'a container whose endpoint is gone',
      () => vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://127.0.0.1:9/creds'),
      /container endpoint.*AWS_CONTAINER_CREDENTIALS_FULL_URI/s,
    ],
    [
      'a container without a role',
      () => refusing('AWS_CONTAINER_CREDENTIALS_FULL_URI', 403, '{"message":"No role"}', '/creds'),
      /container endpoint.*AWS_CONTAINER_CREDENTIALS_FULL_URI/s,
    ],
    [
      'an instance without a role',
      () =>
        instance(({ method }, response) => {
          if (method === 'PUT') response.end('metadata-token');
          else response.writeHead(404).end();
        }),
      /instance.*Give the instance a role/s,
    ],
    [
      'an instance whose metadata service gives no token',
      () => instance((_request, response) => void response.writeHead(403).end()),
      /instance.*Give the instance a role/s,
    ],
    [
      'a credential process that fails',
      () => profile([`credential_process = ${process.execPath} -e "process.exit(3)"`]),
      /credential process.*`credential_process` of the profile works/s,
    ],
    [
      'a role of a profile that is not to be had',
      async () => {
        profile(['aws_access_key_id = AKIABASE', `aws_secret_access_key = ${secretWord}`], 'credentials');
        writeFileSync(
          join(folder, 'config'),
          '[profile work]\nrole_arn = arn:aws:iam::123456789012:role/models\nsource_profile = default\n',
        );
        vi.stubEnv('AWS_PROFILE', 'work');
        await refusing('AWS_ENDPOINT_URL_STS', 403, denied('AssumeRole'));
      },
      /shared files \(AccessDenied.*the profile is sound/s,
    ],
  ];

  test.each(cases)('%s', async (_name, prepare, sentence) => {
    await prepare();
    await expect(identity().credentials()).rejects.toMatchObject({
      code: 'upstream_error',
      message: 'The channel for this model has no valid credentials.',
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).toMatch(
      /^AWS credentials could not be found: (the last link tried was|what is set up is) /,
    );
    expect(lines[0]?.msg).toMatch(sentence);
    expect(JSON.stringify(lines)).not.toContain(secretWord);
  });
});
