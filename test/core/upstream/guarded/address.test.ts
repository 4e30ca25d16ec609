/* oxlint-disable vitest/valid-expect -- one test serves many cases: the message says which it was. */
import { describe, expect, test } from 'vitest';
import { addressList } from '../../../../core/model/addresses.ts';
import { isOpenAddress, mayConnect, readClientUrl } from '../../../../core/upstream/guarded/address.ts';

const nothing = addressList([]);

/** True when the guard would connect to this URL, were its name public. */
function passes(text: string): boolean {
  const url = readClientUrl(text);
  return typeof url !== 'string' && mayConnect(url, nothing);
}

/** Every way of writing an address that is not public, as a URL. */
const closed = [
  // Loopback, in all notations of IPv4.
  'http://127.0.0.1/',
  'http://127.0.0.1./',
  'http://127.1/',
  'http://127.0.1/',
  'http://127.255.255.254/',
  'http://2130706433/',
  'http://017700000001/',
  'http://0x7f000001/',
  'http://0x7f.0.0.1/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://0177.0.0x1/',
  'http://000177.0.0.01/',
  'http://127.0.0.1:80/',
  'http://%31%32%37.0.0.1/',
  'http://127%2e0%2e0%2e1/',
  'http://１２７.０.０.１/',
  'http://127。0。0。1/',
  'http://①②⑦.⓪.⓪.①/',
  'http:\\\\127.0.0.1\\',
  'http:/127.0.0.1/',
  'http:127.0.0.1',
  'ht\ntp://127.0.\t0.1/',
  ' http://127.0.0.1/ ',
  'HTTP://127.0.0.1/',
  'https://127.0.0.1/',
  // "This network", private networks, and what providers and clouds keep for themselves.
  'http://0/',
  'http://0.0.0.0/',
  'http://0.1.2.3/',
  'http://10.0.0.1/',
  'http://10.255.255.255/',
  'http://167772161/',
  'http://012.0.0.1/',
  'http://100.64.0.1/',
  'http://100.100.100.200/',
  'http://100.127.255.255/',
  'http://168.63.129.16/',
  'http://169.254.169.254/',
  'http://0xa9fea9fe/',
  'http://2852039166/',
  'http://0251.0376.0251.0376/',
  'http://169.254.43518/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.0.0.192/',
  'http://192.0.2.1/',
  'http://192.88.99.1/',
  'http://192.168.0.1/',
  'http://192.168.65535/',
  'http://198.18.0.1/',
  'http://198.19.255.255/',
  'http://198.51.100.7/',
  'http://203.0.113.7/',
  'http://224.0.0.1/',
  'http://239.255.255.250/',
  'http://240.0.0.1/',
  'http://255.255.255.255/',
  'http://4294967295/',
  // IPv6.
  'http://[::]/',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[0000:0000:0000:0000:0000:0000:0000:0001]/',
  'http://[::1]:80/',
  'http://[::127.0.0.1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[::FFFF:7F00:0001]/',
  'http://[0:0:0:0:0:ffff:a9fe:a9fe]/',
  'http://[::ffff:0:127.0.0.1]/',
  'http://[::ffff:808:808:1]/',
  'http://[::1:ffff:808:808]/',
  'http://[::ffff:10.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b::10.0.0.1]/',
  'http://[64:ff9b:1::1]/',
  'http://[100::1]/',
  'http://[2001::1]/',
  'http://[2001:0:7f00:1::]/',
  'http://[2001:10::1]/',
  'http://[2001:1ff:ffff::1]/',
  'http://[2001:db8::1]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a9fe:a9fe::1]/',
  'http://[3fff::1]/',
  'http://[5f00::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[fe80::1]/',
  'http://[febf::1]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[4000::1]/',
  'http://[fe80::1%25eth0]/',
  'http://[::1%lo]/',
  // Names of the machine itself.
  'http://localhost/',
  'http://LOCALHOST/',
  'http://localhost./',
  'http://ｌｏｃａｌｈｏｓｔ/',
  'http://l%6fcalhost/',
  'http://any.localhost/',
  'http://metadata/',
  'http://metadata.google.internal/',
  'http://metadata.google.internal./',
  'http://METADATA.goog/',
  'http://instance-data/',
  'http://instance-data.ec2.internal/',
  // No name at all.
  'http://./',
] as const;

describe('private addresses', () => {
  test('there are at least forty ways to write one', () => {
    process.stdout.write(`forms of private addresses that are refused: ${new Set(closed).size}\n`);
    expect(new Set(closed).size).toBeGreaterThanOrEqual(100);
  });

  test.each(closed)('%j is not connected to', (url) => {
    expect(passes(url)).toBe(false);
  });

  test.each([
    'http://8.8.8.8/',
    'http://1.1.1.1:8080/x.png?y#z',
    'https://172.15.0.1/',
    'https://172.32.0.1/',
    'http://100.63.255.255/',
    'http://100.128.0.1/',
    'http://169.253.0.1/',
    'http://192.0.1.1/',
    'http://192.167.0.1/',
    'http://198.17.0.1/',
    'http://198.20.0.1/',
    'http://223.255.255.255/',
    'http://[2606:4700:4700::1111]/',
    'http://[2a00:1450:4001::1]/',
    'http://[2001:200::1]/',
    'http://[::ffff:8.8.8.8]/',
    'https://example.com/a.png',
    'https://example.com:8443/a.png',
    'https://localhost.example.com/',
    'https://metadata.example.com/',
    'https://bücher.example/',
  ])('%j may be connected to', (url) => {
    expect(passes(url)).toBe(true);
  });

  test('names that resolve to one are found by the address, however it is spelled', () => {
    for (const address of [
      '127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '0:0:0:0:0:FFFF:7F00:0001',
      '::1',
      'fe80::1%eth0',
      '10.1.2.3',
      'not an address',
      '',
      '127.1',
    ])
      expect(isOpenAddress(address, nothing), address).toBe(false);
    for (const address of ['93.184.216.34', '::ffff:93.184.216.34', '2606:4700::6810:84e5'])
      expect(isOpenAddress(address, nothing), address).toBe(true);
  });

  test('the operator may open a range, and no other opens with it', () => {
    const allowed = addressList(['127.0.0.1/32', '10.20.0.0/16', 'fd00:1::/32']);
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '10.20.255.1', 'fd00:1::7'])
      expect(isOpenAddress(address, allowed), address).toBe(true);
    for (const address of ['127.0.0.2', '10.21.0.1', '::1', 'fd00:2::7', '192.168.0.1'])
      expect(isOpenAddress(address, allowed), address).toBe(false);
  });
});

describe('URLs that clients give', () => {
  test.each([
    'ftp://example.com/a.png',
    'file:///etc/passwd',
    'gopher://example.com:70/_x',
    'data:image/png;base64,AAAA',
    'javascript:alert(1)',
    'blob:https://example.com/x',
    'ws://example.com/',
    'unix:/var/run/docker.sock',
    '//example.com/a.png',
    '/a.png',
    'example.com/a.png',
    '',
    'http://',
    'http://[::1/',
    'http://256.0.0.1/',
    'http://1.2.3.4.5/',
    'http://exa mple.com/',
    'http://example.com:99999/',
    `https://example.com/${'a'.repeat(9000)}`,
  ])('%j is no address of a file', (url) => {
    expect(readClientUrl(url)).toBe('an http or https URL of at most 8192 characters');
  });

  test.each([
    'http://user:secret@example.com/',
    'http://user@example.com/',
    'http://:secret@example.com/',
    'http://example.com@127.0.0.1/',
    'http://127.0.0.1:80@example.com/',
    'http://example.com%2f@127.0.0.1/',
  ])('%j would send credentials, or hides where it leads', (url) => {
    expect(readClientUrl(url)).toBe('a URL without a user name and a password');
  });

  test('only ports of web servers are tried', () => {
    for (const port of [0, 1, 21, 22, 23, 25, 53, 110, 135, 139, 389, 445, 465, 587, 993, 1023])
      expect(passes(`http://example.com:${port}/`), String(port)).toBe(false);
    for (const port of [80, 443, 1024, 3000, 8080, 8443, 65_535])
      expect(passes(`http://example.com:${port}/`), String(port)).toBe(true);
  });
});
