import { BlockList, isIP } from 'node:net';
import type { ApiKey } from '#sluice';

/** One list per key record: a changed record is another object. */
const lists = new WeakMap<ApiKey, BlockList>();

/** Whether a key may be used from this address. An entry that is neither an address nor a range matches nothing. */
export function allowsAddress(key: ApiKey, address: string): boolean {
  if (key.addresses === undefined) return true;
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = listOf(key.addresses)));
  // A socket that takes both families shows IPv4 callers as ::ffff:192.0.2.1; link-local ones carry a zone.
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  const family = isIP(plain);
  return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
}

function listOf(addresses: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of addresses) {
    const [, network = '', length] = /^\s*([^/\s]+)(?:\/(\d{1,3}))?\s*$/.exec(entry) ?? [];
    const family = isIP(network);
    const longest = family === 6 ? 128 : 32;
    const bits = Number(length ?? longest);
    if (family !== 0 && bits <= longest) list.addSubnet(network, bits, family === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
