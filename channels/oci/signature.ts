/** Signs requests to Oracle Cloud Infrastructure with version 1 of its HTTP signature. */
import { createHash, sign, type KeyObject } from 'node:crypto';
import type { HttpRequest } from 'sluice';

/** Key that signs: the id under which Oracle knows its public half, and the private half. */
export interface OciKey {
  /** `TENANCY/USER/FINGERPRINT`, or `ST$` and a session token. */
  readonly keyId: string;
  readonly privateKey: KeyObject;
}

/**
 * Returns the headers of a signed request. `date` has the form of `toUTCString`.
 * https://docs.oracle.com/en-us/iaas/Content/API/Concepts/signingrequests.htm
 */
export async function ociHeaders(
  { url, method, body }: Pick<HttpRequest, 'url' | 'method' | 'body'>,
  { keyId, privateKey }: OciKey,
  date = new Date().toUTCString(),
): Promise<Readonly<Record<string, string>>> {
  if (body !== undefined && typeof body !== 'string' && !Buffer.isBuffer(body))
    throw new Error('Forms cannot be signed for Oracle Cloud Infrastructure.');
  const { host, pathname, search } = new URL(url);
  const verb = method ?? (body === undefined ? 'GET' : 'POST');
  const ofBody = body === undefined ? {} : bodyHeaders(body);
  const target = `${verb.toLowerCase()} ${pathname}${search}`;
  const lines = Object.entries({ date, '(request-target)': target, host, ...ofBody });
  const signature = await signed(lines.map(([name, value]) => `${name}: ${value}`).join('\n'), privateKey);
  const names = lines.map(([name]) => name).join(' ');
  const authorization = `Signature version="1",headers="${names}",keyId="${keyId}",algorithm="rsa-sha256",signature="${signature}"`;
  return { date, ...ofBody, authorization };
}

function bodyHeaders(body: Buffer | string) {
  return {
    'content-length': String(Buffer.byteLength(body)),
    'content-type': 'application/json',
    'x-content-sha256': createHash('sha256').update(body).digest('base64'),
  };
}

/** Returns the signature in base64. Computed off the event loop, because it takes almost a millisecond. */
function signed(text: string, key: KeyObject): Promise<string> {
  return new Promise((resolve, reject) => {
    sign('RSA-SHA256', Buffer.from(text), key, (error, signature) => {
      if (error === null) resolve(signature.toString('base64'));
      else reject(error);
    });
  });
}
