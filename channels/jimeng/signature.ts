/** Signs requests to Volcengine with HMAC-SHA256. */
import { createHash, createHmac } from 'node:crypto';

/** Parts of a request that are signed. */
export interface VolcRequest {
  readonly method: string;
  readonly url: URL;
  readonly contentType: string;
  readonly body: Buffer | string;
}

/** Access key, service, region and time of a signature. */
export interface VolcSigner {
  readonly access: string;
  readonly secret: string;
  readonly region: string;
  readonly service: string;
  readonly at: Date;
}

/** Returns the headers of a signed request. */
export function volcHeaders(
  { method, url, contentType, body }: VolcRequest,
  { access, secret, region, service, at }: VolcSigner,
): Readonly<Record<string, string>> {
  const date = at.toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
  const day = date.slice(0, 8);
  const content = createHash('sha256').update(body).digest('hex');
  const signed = 'content-type;host;x-content-sha256;x-date';
  const canonical = [
    method,
    url.pathname === '' ? '/' : url.pathname,
    queryOf(url),
    `content-type:${contentType}\nhost:${url.host}\nx-content-sha256:${content}\nx-date:${date}\n`,
    signed,
    content,
  ].join('\n');
  const scope = `${day}/${region}/${service}/request`;
  const text = ['HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const key = [day, region, service, 'request'].reduce<Buffer | string>(
    (before, step) => createHmac('sha256', before).update(step).digest(),
    secret,
  );
  const signature = createHmac('sha256', key).update(text).digest('hex');
  return {
    'content-type': contentType,
    'x-date': date,
    'x-content-sha256': content,
    authorization: `HMAC-SHA256 Credential=${access}/${scope}, SignedHeaders=${signed}, Signature=${signature}`,
  };
}

/** Parameters in their order, spelled as RFC 3986 has it. */
function queryOf({ searchParams }: URL): string {
  return [...searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join('&');
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
