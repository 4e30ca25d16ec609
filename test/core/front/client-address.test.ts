import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createClientAddress } from '../../../core/front/client-address.ts';

const proxy = '10.0.0.1';
const trusted = ['10.0.0.0/8', '2001:db8:ffff::/48'];

function addressOf(headers: IncomingHttpHeaders, peer = proxy, proxies: readonly string[] = trusted): string {
  const socket = { remoteAddress: peer } as IncomingMessage['socket'];
  return createClientAddress(proxies)({ headers, socket });
}
const listed = (value: string, peer?: string): string => addressOf({ 'x-forwarded-for': value }, peer);
const forwarded = (value: string): string => addressOf({ forwarded: value });

describe('without trusted proxies', () => {
  test('the socket alone says who sent a request', () => {
    const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' };
    expect(addressOf(headers, '203.0.113.9', [])).toBe('203.0.113.9');
    expect(addressOf(headers, '::ffff:203.0.113.9', [])).toBe('203.0.113.9');
  });
});

test('a connection that is gone has no address', () => {
  const socket = {} as IncomingMessage['socket'];
  for (const proxies of [[], trusted]) expect(createClientAddress(proxies)({ headers: {}, socket })).toBe('');
});

describe('behind trusted proxies', () => {
  test('a stranger who sends the headers himself is not believed', () => {
    expect(listed('192.0.2.1', '203.0.113.9')).toBe('203.0.113.9');
  });

  test('the last address that is not of a trusted proxy counts; what stands before it may be invented', () => {
    expect(listed('192.0.2.1')).toBe('192.0.2.1');
    expect(listed('192.0.2.66, 192.0.2.1')).toBe('192.0.2.1');
    expect(listed('127.0.0.1,192.0.2.1 , 10.9.9.9,10.0.0.2')).toBe('192.0.2.1');
    expect(listed('192.0.2.1', '::ffff:10.0.0.1')).toBe('192.0.2.1');
    expect(addressOf({ 'x-forwarded-for': ['192.0.2.66', '192.0.2.1'] as unknown as string })).toBe(
      '192.0.2.1',
    );
  });

  test('headers of 4,096 characters are read, and longer ones say nothing', () => {
    const address = '192.0.2.1';
    expect(listed(address.padStart(4096))).toBe(address);
    expect(listed(address.padStart(4097))).toBe(proxy);
    expect(forwarded(`for=${address}`.padStart(4096))).toBe(address);
    expect(forwarded(`for=${address}`.padStart(4097))).toBe(proxy);
  });

  test('a request that began at a trusted proxy is that proxy’s', () => {
    expect(listed('10.1.1.1, 10.2.2.2')).toBe('10.1.1.1');
    expect(addressOf({})).toBe(proxy);
  });

  test('ports, brackets, zones and mapped addresses are read', () => {
    expect(listed('192.0.2.1:4711')).toBe('192.0.2.1');
    expect(listed('[2001:db8::7]:4711')).toBe('2001:db8::7');
    expect(listed('2001:db8::7')).toBe('2001:db8::7');
    expect(listed('::ffff:192.0.2.1')).toBe('192.0.2.1');
  });

  test('what is no address ends the chain: the last that was believed stays', () => {
    for (const value of [
      '',
      ',',
      'unknown',
      'localhost',
      '1.2.3',
      '192.0.2.1;',
      '"192.0.2.1"',
      '_hidden',
      '[::1',
      '🦊',
    ])
      expect({ value, address: listed(value) }).toEqual({ value, address: proxy });
    expect(listed('192.0.2.1, garbage')).toBe(proxy);
    expect(listed('garbage, 10.0.0.7')).toBe('10.0.0.7');
    expect(listed('192.0.2.1, '.repeat(10_000))).toBe(proxy);
  });

  test('the Forwarded header says the same', () => {
    expect(forwarded('for=192.0.2.1')).toBe('192.0.2.1');
    expect(forwarded('For="[2001:db8::7]:4711";proto=https;by=10.0.0.1')).toBe('2001:db8::7');
    expect(forwarded('for=192.0.2.66, proto=http; for=192.0.2.1 , for=10.0.0.4')).toBe('192.0.2.1');
    for (const value of [
      '',
      'proto=https',
      'for=unknown',
      'for=_x',
      'for=',
      'for="192.0.2.1',
      'by=192.0.2.1',
    ])
      expect({ value, address: forwarded(value) }).toEqual({ value, address: proxy });
  });

  test('neither header is believed when they tell different stories', () => {
    expect(addressOf({ 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' })).toBe('192.0.2.1');
    expect(addressOf({ 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.2' })).toBe(proxy);
    expect(addressOf({ 'x-forwarded-for': '192.0.2.1', forwarded: 'garbage' })).toBe(proxy);
  });

  test('whatever is sent, the answer is an address that was there, and never fails', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.string({ maxLength: 60 }), (one, other) => {
        const address = addressOf({ 'x-forwarded-for': `${one}, 192.0.2.1`, forwarded: other });
        expect([proxy, '192.0.2.1']).toContain(address);
      }),
    );
  });
});
