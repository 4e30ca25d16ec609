/** Decides which URLs, hosts and IP addresses given by clients may be connected to: public ones, and those that the operator allows. */
import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { addressList, type AddressList } from '../../model/addresses.ts';

/** Non-public IPv4 addresses (IANA's special-purpose registry), and a public address of a cloud's metadata service. */
const closedIPv4 = addressList([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/** The public part of IPv6: everything else is loopback, local, multicast, IPv4-mapped or unassigned. */
const openIPv6 = addressList(['2000::/3']);

/** Special-purpose ranges within that part: tunnels, documentation and protocol assignments. */
const closedIPv6 = addressList(['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']);

/** Names of local and metadata services, whatever they resolve to. */
const closedNames =
  /^(?:(?:.+\.)?localhost|metadata|metadata\.google\.internal|metadata\.goog|instance-data(?:\.ec2\.internal)?)$/;

/** Returns the canonical form of an IP address, IPv4-mapped ones as IPv4. Undefined for anything else, such as an address with a zone. */
function canonical(address: string): string | undefined {
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes('%')) return undefined;
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  const bytes = [Number.parseInt(high, 16), Number.parseInt(low, 16)].flatMap((word) => [
    word >> 8,
    word & 255,
  ]);
  return bytes.join('.');
}

/** Returns true for an address that is public and not one of this machine, or that the operator allows. */
export function isOpenAddress(address: string, allowed: AddressList): boolean {
  const plain = canonical(address);
  if (plain === undefined) return false;
  if (allowed.has(plain)) return true;
  const isPublic = isIPv4(plain) ? !closedIPv4.has(plain) : openIPv6.has(plain) && !closedIPv6.has(plain);
  return isPublic && !isOwnAddress(plain);
}

function isOwnAddress(plain: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => canonical(address) === plain),
  );
}

/** Maximum length of a URL in characters. Signed ones are long. */
const longestUrl = 8192;

/**
 * Parses a URL of a client. Returns a text for an invalid one, which names the expected form (`an http or https URL`). Does not check the host:
 * see {@link mayConnect}.
 */
export function readClientUrl(text: string): URL | string {
  const url = text.length > longestUrl ? null : URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    return `an http or https URL of at most ${longestUrl} characters`;
  if (url.username !== '' || url.password !== '') return 'a URL without a user name and a password';
  return url;
}

/** Returns the host of a URL without brackets and without a trailing dot. */
export function hostOf(url: URL): string {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return host.endsWith('.') ? host.slice(0, -1) : host;
}

/** Returns true for a URL whose host and port are allowed. The addresses of a name must be checked with {@link isOpenAddress}. */
export function mayConnect(url: URL, allowed: AddressList): boolean {
  const port = url.port === '' ? 80 : Number(url.port);
  // Ports below 1024 belong to services that are no web servers: mail, remote shells, file shares.
  if (port < 1024 && port !== 80 && port !== 443) return false;
  const host = hostOf(url);
  if (host === '') return false;
  return isIPv4(host) || isIPv6(host) ? isOpenAddress(host, allowed) : !closedNames.test(host);
}
