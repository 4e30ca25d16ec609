/** Reads and removes the credentials in the headers of a call. */
import type { ClientCredential, Wire } from 'sluice';

const socketPrefix = 'openai-insecure-api-key.';

/** Carries a key of the gateway where the other headers carry a credential for a provider. */
const gatewayHeader = 'x-sluice-key';

/** Headers that carry a key or another secret of the client's. */
const secretHeaders = [
  'x-api-key',
  'authorization',
  'x-goog-api-key',
  'x-g-api-key',
  'api-key',
  gatewayHeader,
  'cookie',
  'proxy-authorization',
];

/** Returns every credential of the request, in the order in which they count. Ignores empty ones. */
export function readCredentials({ headers, query }: Wire): string[] {
  const found: string[] = [];
  addValues(found, headers['x-api-key']);
  addValues(found, headers.authorization, (value) => bearer(value) ?? accessKey(value));
  addValues(found, headers['x-goog-api-key']);
  addValues(found, headers['x-g-api-key']);
  addValues(found, headers['api-key']);
  if (query.size > 0) for (const value of query.getAll('key')) addValue(found, value);
  if (headers['sec-websocket-protocol'] !== undefined)
    for (const name of protocols(headers)) if (isKey(name)) addValue(found, name.slice(socketPrefix.length));
  return found;
}

/** Returns the key of the gateway where it has a header to itself: what the request carries besides is for a provider. */
export function readGatewayKey({ headers }: Wire): string | undefined {
  const found: string[] = [];
  addValues(found, headers[gatewayHeader]);
  return found[0];
}

/** Formats whose keys have a header of their own, so that an `authorization` header carries a token. */
const keyHeaders: Readonly<Record<string, string>> = {
  messages: 'x-api-key',
  'generate-content': 'x-goog-api-key',
};

/** Returns the credential for a provider in a request that has the key of the gateway in a separate header. `isOurs` detects keys of the gateway. */
export function readClientCredential(
  wire: Wire,
  format: string,
  isOurs: (value: string) => boolean,
): ClientCredential | undefined {
  const value = readCredentials(wire).find((one) => !isOurs(one));
  if (value === undefined) return undefined;
  const isToken = keyHeaders[format] !== undefined && bearerOf(wire) === value;
  return { kind: isToken ? 'token' : 'key', value };
}

function bearerOf({ headers }: Wire): string | undefined {
  return headers.authorization === undefined ? undefined : bearer(headers.authorization)?.trim();
}

/** Removes every credential from the request, so that no later plugin or channel can read or forward one. */
export function removeCredentials({ headers, query }: Wire): void {
  // Set to undefined, not deleted, because deleting a member makes the object slow to read.
  for (const name of secretHeaders) if (headers[name] !== undefined) headers[name] = undefined;
  if (query.size > 0) query.delete('key');
  if (headers['sec-websocket-protocol'] === undefined) return;
  const offered = protocols(headers);
  if (offered.some(isKey))
    headers['sec-websocket-protocol'] = offered.filter((name) => !isKey(name)).join(', ');
}

/** Adds the values of a header. Node joins a repeated header with a comma and a space; no key has a space in it. */
function addValues(
  found: string[],
  header: string | readonly string[] | undefined,
  read: (value: string) => string | undefined = (value) => value,
): void {
  if (header === undefined) return;
  if (typeof header === 'string' && !header.includes(', ')) {
    addValue(found, read(header));
    return;
  }
  for (const line of typeof header === 'string' ? [header] : header) {
    for (const part of line.split(', ')) addValue(found, read(part));
  }
}

function addValue(found: string[], value: string | undefined): void {
  const trimmed = value?.trim();
  if (trimmed) found.push(trimmed);
}

function bearer(value: string): string | undefined {
  if (value.startsWith('Bearer ')) return value.slice('Bearer '.length);
  return /^\s*bearer\s+(.*)$/i.exec(value)?.[1];
}

/**
 * Returns the access key id of a signed request, where clients of a cloud put our key: they have no other place for it. It is the whole key, shown
 * as a bearer shows it; the signature, made with a secret that nobody here knows, says nothing more and is not looked at.
 */
function accessKey(value: string): string | undefined {
  return /^AWS4-HMAC-SHA256\s+Credential=([^/\s]+)\//.exec(value)?.[1];
}

function protocols(headers: Wire['headers']): string[] {
  return headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
}

function isKey(protocol: string): boolean {
  return protocol.startsWith(socketPrefix);
}
