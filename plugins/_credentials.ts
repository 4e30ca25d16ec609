import type { Wire } from '#sluice';

const socketPrefix = 'openai-insecure-api-key.';

/** Headers that carry a key or another secret of the client's. */
const secretHeaders = ['x-api-key', 'authorization', 'x-goog-api-key', 'x-g-api-key', 'cookie', 'proxy-authorization'];

/** Every credential that the request carries, in the order in which they count. Empty ones are passed over. */
export function readCredentials({ headers, query }: Wire): string[] {
  return [
    ...values(headers['x-api-key']),
    ...values(headers.authorization).flatMap(bearer),
    ...values(headers['x-goog-api-key']),
    ...values(headers['x-g-api-key']),
    ...query.getAll('key'),
    ...protocols(headers['sec-websocket-protocol']).filter(isKey).map((name) => name.slice(socketPrefix.length)),
  ]
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

/** Takes every credential off the request, so that neither a plugin nor a channel behind can see or forward one. */
export function removeCredentials({ headers, query }: Wire): void {
  for (const name of secretHeaders) delete headers[name];
  query.delete('key');
  const offered = protocols(headers['sec-websocket-protocol']);
  if (offered.some(isKey)) headers['sec-websocket-protocol'] = offered.filter((name) => !isKey(name)).join(', ');
}

/** Node joins a repeated header with a comma and a space; no key has a space in it. */
function values(header: string | readonly string[] | undefined): string[] {
  return [header ?? []].flat().flatMap((value) => value.split(', '));
}

function bearer(value: string): string[] {
  const token = /^\s*bearer\s+(.*)$/i.exec(value)?.[1];
  return token === undefined ? [] : [token];
}

function protocols(header: string | readonly string[] | undefined): string[] {
  return [header ?? []].flat().flatMap((value) => value.split(',')).map((name) => name.trim());
}

function isKey(protocol: string): boolean {
  return protocol.startsWith(socketPrefix);
}
