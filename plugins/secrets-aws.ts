/** Reads secrets of AWS Secrets Manager that the config names by reference: `aws:NAME-OR-ARN?version=STAGE-OR-ID#FIELD`. */
import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import {
  defineSecrets,
  requirePackage,
  secret,
  secretUrl,
  type SecretSource,
  type SecretTools,
} from 'sluice';

const options = z.strictObject({
  /** AWS region of secrets whose reference is not an ARN: `eu-central-1`. */
  region: z.string().regex(/^[a-z]{2}(?:-[a-z]+)+-\d$/, 'must be a region, such as eu-central-1'),
  /** Access key of AWS. Default: the default provider chain of AWS, for which `@aws-sdk/credential-providers` must be installed. */
  credentials: z
    .strictObject({
      accessKeyId: z.string().min(1).describe('id of the access key'),
      secretAccessKey: secret(z.string().min(1)).describe('secret access key'),
      sessionToken: secret(z.string().min(1)).optional().describe('session token of a temporary key'),
    })
    .optional(),
  /** Profile of the shared AWS configuration files, for the default provider chain. */
  profile: z.string().min(1).optional(),
  /** URL in place of the region's endpoint, such as a VPC endpoint. */
  endpoint: secretUrl(z.url({ protocol: /^https?$/ })).optional(),
});

type Options = z.output<typeof options>;
type Credentials = NonNullable<Options['credentials']>;

/** See GetSecretValue: https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html */
const answered = z.object({ SecretString: z.string().optional(), SecretBinary: z.string().optional() });

const target = 'secretsmanager.GetSecretValue';

/** Maximum bytes of a response. A secret has at most 64 KiB. */
const maxBytes = 512 * 1024;

const advice: Readonly<Record<string, string>> = {
  AccessDeniedException:
    'allow secretsmanager:GetSecretValue, and kms:Decrypt where the secret has a key of its own',
  DecryptionFailure: 'allow kms:Decrypt for the key of the secret',
  InvalidRequestException: 'the secret may be marked for deletion: restore it',
  InvalidSignatureException: 'check the secret access key, and the clock of this machine',
  UnrecognizedClientException: 'check the access key and the session token',
  ExpiredTokenException: 'the session has expired: set credentials that are renewed',
  ThrottlingException: 'read secrets less often with secrets.refresh',
};

/** Reads secrets of AWS Secrets Manager, by its API of 2017-10-17. */
export default defineSecrets({ name: 'secrets-aws', source: 'aws', options, open });

function open(chosen: Options, { http }: SecretTools): SecretSource {
  const credentials = credentialsOf(chosen);
  return {
    async read({ name, version, signal }) {
      const [, region = chosen.region] = /^arn:aws[\w-]*:secretsmanager:([a-z0-9-]+):/.exec(name) ?? [];
      const url = new URL(
        chosen.endpoint ??
          `https://secretsmanager.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
      );
      const body = JSON.stringify({ SecretId: name, ...versionOf(version) });
      const headers = {
        host: url.host,
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': target,
      };
      const signed = await sign({ url, headers, body }, await credentials(), region);
      const answer = await http.ask({
        url: new URL('/', url).href,
        method: 'POST',
        headers: signed,
        body,
        limit: maxBytes,
        timeout: 60_000,
        signal,
      });
      const code = answer.status === 200 ? undefined : codeOf(answer.text());
      if (code === 'ResourceNotFoundException') return undefined;
      if (code !== undefined)
        throw new Error(
          `AWS Secrets Manager in ${region} returned status ${answer.status} ${code}: ${advice[code] ?? 'see https://docs.aws.amazon.com/secretsmanager'}`,
        );
      const { SecretString: text, SecretBinary: binary } = answered.parse(answer.json());
      return text ?? (binary === undefined ? undefined : utf8(Buffer.from(binary, 'base64')));
    },
  };
}

/** Ids of versions are 32 to 64 characters long; stages are words such as AWSPREVIOUS. */
function versionOf(version: string | undefined): { VersionId?: string; VersionStage?: string } {
  if (version === undefined) return {};
  return /^[0-9A-Fa-f-]{32,64}$/.test(version) ? { VersionId: version } : { VersionStage: version };
}

/**
 * Returns the name of an error from `__type`, without its namespace. The error's message is not shown, because it may quote the request.
 */
function codeOf(text: string): string {
  try {
    const { __type: type } = JSON.parse(text) as { readonly __type?: unknown };
    const name = typeof type === 'string' ? type.split('#').at(-1) : undefined;
    return name !== undefined && /^\w{1,64}$/.test(name) ? name : 'without the name of an error';
  } catch {
    return 'without the name of an error';
  }
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('the secret is binary, not text');
  }
}

/** Returns a function that finds credentials, caches them and renews them. */
function credentialsOf({ credentials, profile, region }: Options): () => Promise<Credentials> {
  if (credentials !== undefined) return () => Promise.resolve(credentials);
  requirePackage('@aws-sdk/credential-providers', '3', 'find credentials of AWS');
  let chain: (() => Promise<Credentials & { readonly expiration?: Date }>) | undefined;
  let found: (Credentials & { readonly expiration?: Date }) | undefined;
  return async () => {
    const left = (found?.expiration?.getTime() ?? Infinity) - Date.now();
    if (found !== undefined && left > 5 * 60_000) return found;
    chain ??= (await import('@aws-sdk/credential-providers').then(({ fromNodeProviderChain }) =>
      fromNodeProviderChain({ clientConfig: { region }, ...(profile === undefined ? {} : { profile }) }),
    )) as typeof chain;
    try {
      found = await chain?.();
    } catch (error) {
      const name = error instanceof Error ? error.name : 'an error';
      throw new Error(
        `AWS returned no credentials (${name}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role`,
        {
          cause: error,
        },
      );
    }
    if (found === undefined) throw new Error('AWS returned no credentials');
    return found;
  };
}

interface Signed {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Signs a request with Signature Version 4, with AWS's package. */
async function sign(
  { url, headers, body }: Signed,
  credentials: Credentials,
  region: string,
): Promise<Readonly<Record<string, string>>> {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const { sessionToken, ...keys } = credentials;
  const signer = new SignatureV4({
    service: 'secretsmanager',
    region,
    credentials: { ...keys, ...(sessionToken === undefined ? {} : { sessionToken }) },
    sha256: Sha256,
  });
  const request = {
    method: 'POST',
    protocol: url.protocol,
    hostname: url.hostname,
    path: '/',
    headers,
    body,
  };
  const { host: _, ...rest } = (await signer.sign(request)).headers;
  return rest;
}

/** Digest of Node in the shape that the package requires. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(key));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {}
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data);
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
