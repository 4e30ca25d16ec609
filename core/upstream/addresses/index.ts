import type { JsonValue } from '../../model/json.ts';
import { callKey } from '../../sdk/call-key.ts';
import type { Call, Channel } from '../../sdk/call.ts';
import type { UpstreamRequest } from '../../sdk/channel.ts';
import { GatewayError } from '../../sdk/errors.ts';
import { addressesIn, addressesInFields, mayNameAddress, type NamedAddress } from './find.ts';

/** What a channel says of such addresses. */
export type AddressRules = Pick<Channel, 'forwards' | 'mayRead' | 'mayWrite'>;

/**
 * Returns 403 for the first address that the provider of a channel may not use; undefined where it may use all. With a client's own credential
 * a provider reads what the client may read anyway.
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
    `"${path.slice(0, 200)}" names ${value.slice(0, 200)}, which the provider would ${use} with the rights of this gateway. The operator can allow it with the option ${option} of the channel.`,
    { param: path.slice(0, 200) },
  );
}

/** True for an entry that is the address, or ends in a slash and stands in front of it. */
function allows(entry: string, address: string): boolean {
  const value = withSmallScheme(address);
  if (!entry.endsWith('/')) return value === withSmallScheme(entry);
  return value.startsWith(withSmallScheme(entry)) && !leadsOut.test(value);
}

/** Segments by which a reader of paths leaves a folder, also in the spellings that readers of addresses resolve. */
// oxlint-disable-next-line no-control-regex -- readers of addresses remove them
const leadsOut = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)|%2f|%5c|[\0-\x1f\\]/i;

function withSmallScheme(address: string): string {
  const end = address.indexOf(':');
  return end === -1 ? address : address.slice(0, end).toLowerCase() + address.slice(end);
}

/** The addresses of the request as it came, which are asked for before each attempt. */
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
    // What a plugin has put in place of the client's history, which may be that of earlier calls.
    ...(messages === undefined ? [] : addressesIn({ messages } as unknown as JsonValue)),
  ];
  call.set(foundAddresses, { body, messages, addresses });
  return addresses;
}

function addressesOfBody(call: Call): readonly NamedAddress[] {
  const { bytes, body, outline, params } = call.wire;
  // A question about a task has no body.
  if (body === undefined && call.edits.body === undefined) return [];
  const isAsSent = bytes.length > 0 && call.edits.body === undefined;
  if (isAsSent && outline?.mayNameAddress === false) return [];
  return params.form === undefined ? addressesIn(call.bodyOutline) : addressesInFields(call.bodyOutline);
}

/** Returns 403 for a request that names an address which the channel may not use, whoever has made it; else undefined. */
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
