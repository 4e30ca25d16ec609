/** Signs requests with AWS Signature Version 4, by AWS's own package. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';

/** Credentials of one signature. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Parts of a request that are signed. `headers` has only those that no proxy changes. */
export interface AwsRequest {
  readonly method: string;
  readonly url: URL;
  /** Lower-case names; `host` is added. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/** Service, region and time of a signature. */
export interface AwsScope {
  readonly service: string;
  readonly region: string;
  readonly at?: Date;
  /** False leaves out the header with the body's digest. */
  readonly digest?: boolean;
}

/** Returns the headers of a signed request. AWS's package is loaded for the first signature. */
export async function awsHeaders(
  { method, url, headers, body }: AwsRequest,
  credentials: AwsCredentials,
  { service, region, at, digest = true }: AwsScope,
): Promise<Readonly<Record<string, string>>> {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256, applyChecksum: digest });
  const query: Record<string, string | string[]> = {};
  for (const name of new Set(url.searchParams.keys())) query[name] = url.searchParams.getAll(name);
  const { headers: signed } = await signer.sign(
    {
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query,
      headers: { ...headers, host: url.host },
      body,
    },
    at === undefined ? {} : { signingDate: at },
  );
  const { host: _, ...rest } = signed;
  return rest;
}

/** Node's digest with the interface that the package requires. */
class Sha256 {
  #hash: Hash | Hmac;
  readonly #secret: Uint8Array | string | undefined;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined || typeof secret === 'string' ? secret : bytesOf(secret);
    this.#hash = this.#begin();
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(typeof data === 'string' ? data : bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    this.#hash = this.#begin();
  }

  #begin(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
