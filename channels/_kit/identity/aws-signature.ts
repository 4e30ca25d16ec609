import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';

/** What a request is signed with. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** What is signed: of the headers those that nobody changes on the way. */
export interface AwsRequest {
  readonly method: string;
  readonly url: URL;
  /** Lower-case names; `host` is added. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/** For whom, and when. */
export interface AwsScope {
  readonly service: string;
  readonly region: string;
  readonly at?: Date;
  /** False leaves out the header with the body's digest. */
  readonly digest?: boolean;
}

/** The headers of a request signed with Signature Version 4, by AWS's own package, which is loaded when the first is signed. */
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

/** Node's own digest in the shape that the package wants. */
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
