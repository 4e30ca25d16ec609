/** Fakes of the secret managers of AWS, Google and Azure. They check what the real ones check, and refuse as those do. */
import { createHash, createHmac } from 'node:crypto';
import type { SeenRequest } from '../upstream.ts';
import { startManager, type Answer, type FakeManager } from './manager.ts';

/** A fake manager with secrets by name. */
export interface FakeCloud extends FakeManager {
  readonly secrets: Map<string, string | Buffer>;
}

export const awsKeys = {
  accessKeyId: 'AKIDTESTTESTTESTTEST',
  secretAccessKey: 'aws-secret-access-key-of-tests',
};
export const bearer = 'access-token-of-the-tests';

/**
 * AWS Secrets Manager. Errors have status 400 and a name in `__type`:
 * https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html and API_GetSecretValue.html.
 */
export async function startAws(): Promise<FakeCloud> {
  const manager = await startManager((request) => awsAnswer(cloud.secrets, request));
  const cloud: FakeCloud = Object.assign(manager, { secrets: new Map() });
  return cloud;
}

const awsError = (type: string, message: string): Answer => [400, { __type: type, Message: message }];

function awsAnswer(secrets: FakeCloud['secrets'], request: SeenRequest): Answer {
  const { headers, method, url, body } = request;
  if (method !== 'POST' || url !== '/' || headers['content-type'] !== 'application/x-amz-json-1.1')
    return [404, '<UnknownOperationException/>'];
  if (headers['x-amz-target'] !== 'secretsmanager.GetSecretValue')
    return awsError('UnknownOperationException', '');
  if (!String(headers.authorization).includes(`Credential=${awsKeys.accessKeyId}/`))
    return awsError('UnrecognizedClientException', 'The security token included in the request is invalid.');
  if (!isSigned(request))
    return awsError(
      'InvalidSignatureException',
      'The request signature we calculated does not match the signature you provided.',
    );
  const given = JSON.parse(body.toString()) as {
    SecretId: string;
    VersionStage?: string;
    VersionId?: string;
  };
  const { SecretId, VersionStage = stageOrId('AWSCURRENT', given.VersionId) } = given;
  if (SecretId.startsWith('denied/'))
    return awsError(
      'AccessDeniedException',
      `User: arn:aws:iam::1:user/x is not authorized to perform: secretsmanager:GetSecretValue on resource: ${SecretId}`,
    );
  const secret = secrets.get(VersionStage === 'AWSCURRENT' ? SecretId : `${SecretId}@${VersionStage}`);
  if (secret === undefined)
    return awsError('ResourceNotFoundException', "Secrets Manager can't find the specified secret.");
  const found = { ARN: `arn:aws:secretsmanager:eu-central-1:1:secret:${SecretId}-AbCdEf`, Name: SecretId };
  return [
    200,
    {
      ...found,
      ...(typeof secret === 'string'
        ? { SecretString: secret }
        : { SecretBinary: secret.toString('base64') }),
    },
  ];
}

function stageOrId(otherwise: string, id: string | undefined): string {
  return id ?? otherwise;
}

/** Signature Version 4, from its description: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
function isSigned({ headers, body }: SeenRequest): boolean {
  const [, scope = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
      String(headers.authorization),
    ) ?? [];
  const [day = '', region = '', service = '', end = ''] = scope.split('/');
  const date = String(headers['x-amz-date']);
  const needed = ['host', 'x-amz-date', 'x-amz-target'];
  if (service !== 'secretsmanager' || end !== 'aws4_request' || !date.startsWith(day)) return false;
  if (!needed.every((name) => names.split(';').includes(name))) return false;
  const hash = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string): Buffer =>
    createHmac('sha256', key).update(text).digest();
  const canonical = names
    .split(';')
    .map((name) => `${name}:${String(headers[name]).trim()}\n`)
    .join('');
  const request = ['POST', '/', '', canonical, names, hash(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', date, scope, hash(request)].join('\n');
  const key = [day, region, service, end].reduce<string | Buffer>(hmac, `AWS4${awsKeys.secretAccessKey}`);
  return hmac(key, toSign).toString('hex') === signature;
}

/**
 * Google Secret Manager, and the token endpoint of a workload identity pool (RFC 8693). Errors:
 * https://cloud.google.com/apis/design/errors, a version that is disabled is 400 FAILED_PRECONDITION.
 */
export async function startGoogle(): Promise<FakeCloud> {
  const manager = await startManager((request) => googleAnswer(cloud.secrets, request));
  const cloud: FakeCloud = Object.assign(manager, { secrets: new Map() });
  return cloud;
}

const googleError = (code: number, status: string, message: string): Answer => [
  code,
  { error: { code, status, message } },
];

function googleAnswer(secrets: FakeCloud['secrets'], { url, method, headers, body }: SeenRequest): Answer {
  if (url === '/token' && method === 'POST')
    return new URLSearchParams(body.toString()).get('subject_token') === 'token-of-the-pod'
      ? [
          200,
          {
            access_token: bearer,
            token_type: 'Bearer',
            expires_in: 3600,
            issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          },
        ]
      : [400, { error: 'invalid_grant', error_description: 'The subject token is not valid.' }];
  if (headers.authorization !== `Bearer ${bearer}`)
    return googleError(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
  const [, name = '', version = ''] =
    /^\/v1\/(projects\/[^/]+\/secrets\/[^/]+)\/versions\/([^:]+):access$/.exec(url) ?? [];
  if (name.includes('/secrets/denied'))
    return googleError(
      403,
      'PERMISSION_DENIED',
      `Permission 'secretmanager.versions.access' denied for resource '${name}'.`,
    );
  // A proxy that leaves out the JSON around a secret.
  if (name.endsWith('/plain')) return [200, 'google-secret-plain'];
  if (version === 'disabled')
    return googleError(400, 'FAILED_PRECONDITION', 'Secret Version is in DISABLED state.');
  const secret = secrets.get(version === 'latest' ? name : `${name}@${version}`);
  if (secret === undefined)
    return googleError(404, 'NOT_FOUND', `Secret [${name}] not found or has no versions.`);
  const bytes = Buffer.from(secret);
  return [
    200,
    {
      name: `${name}/versions/1`,
      payload: { data: bytes.toString('base64'), dataCrc32c: checksums.get(bytes.toString()) ?? '1' },
    },
  ];
}

/** CRC-32C of the texts of the tests, computed by another implementation (`google-crc32c` 1.9.0 of PyPI). */
const checksums = new Map([
  ['google-secret-one', '1375934625'],
  ['{"key":"google-secret-two"}', '141657334'],
]);

/**
 * Azure Key Vault, and the token endpoint of a managed identity in App Service. Errors:
 * https://learn.microsoft.com/azure/key-vault/general/rest-error-codes, and the sample of the operation Get Secret, version 7.4.
 */
export async function startAzure(): Promise<FakeCloud> {
  const manager = await startManager((request) => azureAnswer(cloud.secrets, request));
  const cloud: FakeCloud = Object.assign(manager, { secrets: new Map() });
  return cloud;
}

const azureError = (status: number, code: string, inner?: string): Answer => [
  status,
  {
    error: {
      code,
      message: `Caller: appid=8f3b2c1d. ${code}`,
      ...(inner === undefined ? {} : { innererror: { code: inner } }),
    },
  },
];

function azureAnswer(secrets: FakeCloud['secrets'], { url, method, headers }: SeenRequest): Answer {
  const { pathname, searchParams } = new URL(url, 'http://azure');
  if (pathname === '/msi/token') {
    const isKnown =
      headers['x-identity-header'] === 'identity-header-of-tests' &&
      searchParams.get('resource') === 'https://vault.azure.net';
    const expires_on = String(Math.floor(Date.now() / 1000) + 3600);
    return isKnown
      ? [200, { access_token: bearer, expires_on, resource: 'https://vault.azure.net', token_type: 'Bearer' }]
      : [400, {}];
  }
  if (headers.authorization !== `Bearer ${bearer}`) return azureError(401, 'Unauthorized');
  if (searchParams.get('api-version') === null) return azureError(400, 'BadParameter');
  const [, name = '', version] =
    /^\/secrets\/([A-Za-z0-9-]{1,127})(?:\/([0-9a-f]{32}))?$/.exec(pathname) ?? [];
  if (method !== 'GET' || name === '') return azureError(404, 'NotFound');
  // A proxy that leaves out the JSON around a secret.
  if (name === 'plain') return [200, 'azure-secret-plain'];
  if (name === 'denied') return azureError(403, 'Forbidden', 'ForbiddenByRbac');
  const secret = secrets.get(version === undefined ? name : `${name}@${version}`);
  if (secret === undefined) return azureError(404, 'SecretNotFound');
  return [
    200,
    {
      value: String(secret),
      id: `https://mine.vault.azure.net/secrets/${name}/${'0'.repeat(32)}`,
      attributes: { enabled: true },
    },
  ];
}
