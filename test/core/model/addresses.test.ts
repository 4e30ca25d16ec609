import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../core/config/config.ts';
import { addressList, isAddressRange, plainAddress } from '../../../core/model/addresses.ts';

describe('a list of addresses', () => {
  const list = addressList([
    '192.0.2.7',
    '10.0.0.0/8',
    '2001:db8::/32',
    '::ffff:198.51.100.0/120',
    'nonsense',
  ]);

  test('has what it names, in both families and however it is written', () => {
    for (const address of [
      '192.0.2.7',
      '::ffff:192.0.2.7',
      '10.200.0.1',
      '2001:db8:1::5',
      '2001:DB8:1::5%eth0',
      '198.51.100.9',
    ])
      expect({ address, has: list.has(address) }).toEqual({ address, has: true });
  });

  test('has nothing else, least of all what is no address', () => {
    for (const address of [
      '192.0.2.8',
      '11.0.0.1',
      '2001:db9::1',
      '198.51.101.1',
      '',
      'nonsense',
      '10.0.0.0/8',
    ])
      expect({ address, has: list.has(address) }).toEqual({ address, has: false });
  });
});

test('a range is an address, or one with the number of bits that count', () => {
  for (const entry of ['127.0.0.1', '::1', '10.0.0.0/8', '0.0.0.0/0', '2001:db8::/128', ' 10.0.0.1 '])
    expect({ entry, is: isAddressRange(entry) }).toEqual({ entry, is: true });
  for (const entry of [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0/8',
    '::/129',
    '10.0.0.0/',
    '1.2.3.4/8/8',
    '::ffff:1.2.3.4/8',
  ])
    expect({ entry, is: isAddressRange(entry) }).toEqual({ entry, is: false });
});

test('an address is shown without what the socket adds to it', () => {
  expect(plainAddress('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(plainAddress('::FFFF:192.0.2.1')).toBe('192.0.2.1');
  expect(plainAddress('fe80::1%eth0')).toBe('fe80::1');
  expect(plainAddress('2001:db8::1')).toBe('2001:db8::1');
  expect(plainAddress('')).toBe('');
});

test('a trusted proxy that is no address is an error at the start', () => {
  const read = (trustedProxies: string[]) => readConfig({ trustedProxies }, '/somewhere/gateway.config.ts');
  expect(read(['10.0.0.0/8', '::1']).settings.trustedProxies).toEqual(['10.0.0.0/8', '::1']);
  expect(() => read(['10.0.0.0/8', 'load-balancer'])).toThrow(
    'gateway.config.ts: option "trustedProxies.1": must be an IP address or a CIDR range, such as 10.0.0.0/8.',
  );
});
