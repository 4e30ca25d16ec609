import { describe, expect, test } from 'vitest';
import { faultCode, sendableCode, sendableReason } from '../../../core/upstream/socket-close.ts';

describe('the code of a close', () => {
  test.each([1000, 1001, 1002, 1003, 1007, 1008, 1011, 1012, 1013, 1014, 3000, 4000, 4999])(
    '%i is passed on',
    (code) => {
      expect(sendableCode(code)).toBe(code);
    },
  );

  // RFC 6455, section 7.4: reserved, never in a frame, or outside of every range.
  test.each([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000])('%i becomes 1011', (code) => {
    expect(sendableCode(code)).toBe(1011);
  });
});

describe('the reason of a close', () => {
  test('has no more bytes than a frame takes, and no half letter', () => {
    expect(sendableReason('z'.repeat(123))).toBe('z'.repeat(123));
    expect(sendableReason(Buffer.from('z'.repeat(124)))).toBe('z'.repeat(123));
    // Of two bytes each.
    expect(sendableReason('ä'.repeat(70))).toBe('ä'.repeat(61));
  });

  test('tells no key', () => {
    expect(sendableReason('The key sk-abcdefgh12345678 is wrong')).toBe('The key [key] is wrong');
  });
});

describe('a message that cannot be read', () => {
  test.each([
    ['WS_ERR_UNSUPPORTED_MESSAGE_LENGTH', 1009],
    ['WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH', 1009],
    ['WS_ERR_TOO_MANY_BUFFERED_PARTS', 1009],
    ['WS_ERR_INVALID_UTF8', 1007],
    ['WS_ERR_INVALID_OPCODE', 1002],
    ['WS_ERR_UNEXPECTED_RSV_1', 1002],
    ['ECONNRESET', 1011],
    ['EWS_ERR_', 1011],
    [undefined, 1011],
  ])('%s is %i', (code, expected) => {
    expect(faultCode(Object.assign(new Error('no'), code === undefined ? {} : { code }))).toBe(expected);
  });
});
