/** Refuses requests with storage addresses or file paths that the options `mayRead` and `mayWrite` of a channel do not allow. */
import type { JsonValue } from '../../model/json.ts';
import { callKey } from '../../sdk/call-key.ts';
import type { Call, Channel } from '../../sdk/call.ts';
import type { UpstreamRequest } from '../../sdk/channel.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { addressesIn, addressesInFields, mayNameAddress, type NamedAddress } from './find.ts';

/** Members of a channel that decide about addresses. */
export type AddressRules = Pick<Channel, 'forwards' | 'mayRead' | 'mayWrite'>;

/**
 * Returns the 403 error for the first address that the provider of a channel may not use; undefined where it may use all. Allows all addresses
 * with a client's own credential, because the provider then has the rights of the client.
 */
export function refusedAddress(
  addresses: readonly NamedAddress[],
  { forwards, mayRead = [], mayWrite = [] }: AddressRules,
): GatewayError | undefined {
  if (addresses.length === 0 || forwards !== undefined) return undefined;
  const refused = addresses.find(
    ({ value, use }) => !(use === 'read' ? mayRead : mayWrite).some((entry) => allows(entry, value)),
  );
  if (refused === undefined) return undefined;
  const { path, value, use } = refused;
  const option = use === 'read' ? 'mayRead' : 'mayWrite';
  return new GatewayError(
    'forbidden',
    `"${path.slice(0, 200)}" names ${value.slice(0, 200)}, which the provider would ${use} with the rights of this gateway. The operator can allow it with the channel option ${option}.`,
    { param: path.slice(0, 200) },
  );
}

/** Returns true for an entry that equals the address, or that ends in a slash and is a prefix of it. */
function allows(entry: string, address: string): boolean {
  const value = withSmallScheme(address);
  if (!entry.endsWith('/')) return value === withSmallScheme(entry);
  return value.startsWith(withSmallScheme(entry)) && !leadsOut.test(value);
}

/** Matches segments that lead out of a folder (`..`), also in encoded spellings that URL parsers resolve. */
// oxlint-disable-next-line no-control-regex -- readers of addresses remove them
const leadsOut = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)|%2f|%5c|[\0-\x1f\\]/i;

function withSmallScheme(address: string): string {
  const end = address.indexOf(':');
  return end === -1 ? address : address.slice(0, end).toLowerCase() + address.slice(end);
}

/** Cached addresses of the request, because they are needed before each attempt. */
const foundAddresses = callKey<{
  readonly body: unknown;
  readonly messages: unknown;
  readonly addresses: readonly NamedAddress[];
}>('found addresses');

/** Returns the addresses in the request of a call that only the operator can allow. Messages of sessions are judged one by one. */
export function addressesOf(call: Call): readonly NamedAddress[] {
  const { operation } = call;
  if (operation === 'state' || operation === 'realtime' || operation === 'list-models') return [];
  const { body, messages } = call.edits;
  const known = call.get(foundAddresses);
  if (known !== undefined && known.body === body && known.messages === messages) return known.addresses;
  const addresses = [
    ...addressesOfBody(call),
    // Messages that a plugin has put in place of the client's, which may be those of earlier calls.
    ...(messages === undefined ? [] : addressesIn({ messages } as unknown as JsonValue)),
  ];
  call.set(foundAddresses, { body, messages, addresses });
  return addresses;
}

function addressesOfBody(call: Call): readonly NamedAddress[] {
  const { bytes, body, outline, params } = call.wire;
  // A request about a task has no body.
  if (body === undefined && call.edits.body === undefined) return [];
  const isAsSent = bytes.length > 0 && call.edits.body === undefined;
  if (isAsSent && outline?.mayNameAddress === false) return [];
  return params.form === undefined ? addressesIn(call.bodyOutline) : addressesInFields(call.bodyOutline);
}

/** Returns the 403 error for a request with an address that the channel may not use, also for requests of plugins; else undefined. */
export function refusedRequest(
  call: Call,
  { operation, body }: UpstreamRequest,
  rules: AddressRules,
): GatewayError | undefined {
  if (operation !== 'state') return refusedAddress(addressesOf(call), rules);
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return undefined;
  if (body.length === 0 || !mayNameAddress(body)) return undefined;
  return refusedAddress(addressesIn(jsonOf(body)), rules);
}

function jsonOf(body: string | Buffer): JsonValue {
  try {
    return JSON.parse(body.toString()) as JsonValue;
  } catch {
    return null;
  }
}
