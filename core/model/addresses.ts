/** Matches IP addresses against lists of addresses and CIDR ranges. */
import { BlockList, isIP } from 'node:net';

/**
 * IP addresses and CIDR ranges of both families.
 *
 * @example
 * const inside: AddressList = addressList(['10.0.0.0/8', '2001:db8::/32']);
 */
export interface AddressList {
  /** True for an address in the list. Text that is no address is in no list. */
  has(address: string): boolean;
}

/**
 * Returns an IP address in the form in which it is compared and shown: IPv4 without the prefix ::ffff:, which dual-stack sockets add, and
 * link-local addresses without their zone.
 */
export function plainAddress(address: string): string {
  const zone = address.indexOf('%');
  const plain = zone < 0 ? address : address.slice(0, zone);
  return /^::ffff:\d+\./i.test(plain) ? plain.slice('::ffff:'.length) : plain;
}

/** An address or a range with the number of bits that count; undefined for anything else. */
function parseRange(entry: string) {
  const [, written = '', length] = /^\s*([^/\s]+)(?:\/(\d{1,3}))?\s*$/.exec(entry) ?? [];
  const network = plainAddress(written);
  const family = isIP(network);
  const longest = family === 6 ? 128 : 32;
  // The bits of a mapped address are counted from the front of the long form.
  const bits = Number(length ?? longest) - (length !== undefined && network !== written ? 96 : 0);
  if (family === 0 || bits < 0 || bits > longest) return undefined;
  return { network, bits, family: family === 6 ? ('ipv6' as const) : ('ipv4' as const) };
}

/** True for an IP address (`192.0.2.7`, `2001:db8::1`) and for a CIDR range (`10.0.0.0/8`). */
export function isAddressRange(entry: string): boolean {
  return parseRange(entry) !== undefined;
}

/**
 * Compiles a list of IP addresses and CIDR ranges. An entry that is neither matches nothing.
 *
 * @example
 * const inside = addressList(options.addresses);
 * if (!inside.has(call.wire.ip)) throw new GatewayError('forbidden', 'Calls from this address are not allowed.');
 */
export function addressList(entries: readonly string[]): AddressList {
  const list = new BlockList();
  for (const entry of entries) {
    const range = parseRange(entry);
    if (range !== undefined) list.addSubnet(range.network, range.bits, range.family);
  }
  return {
    has(address) {
      const plain = plainAddress(address);
      const family = isIP(plain);
      return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
    },
  };
}
