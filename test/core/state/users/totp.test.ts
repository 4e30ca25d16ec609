import { expect, test } from 'vitest';
import { codeOf, findStep, stepAt, toBase32 } from '../../../../core/state/users/totp.ts';

const secret = Buffer.from('12345678901234567890');

// RFC 6238, appendix B, the rows of SHA-1.
test.each([
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
])('a code at second %i is that of the standard', (seconds, code) => {
  expect(codeOf(secret, stepAt(seconds * 1000), 8)).toBe(code);
  expect(findStep(secret, code.slice(2), seconds * 1000)).toBe(stepAt(seconds * 1000));
});

test('a code of a clock that is half a minute off is taken, one of a whole minute is not', () => {
  const now = 1_234_567_890_000;
  const code = codeOf(secret, stepAt(now));
  expect(findStep(secret, code, now + 30_000)).toBe(stepAt(now));
  expect(findStep(secret, code, now - 30_000)).toBe(stepAt(now));
  expect(findStep(secret, code, now + 60_000)).toBeUndefined();
  expect(findStep(secret, code, now - 60_000)).toBeUndefined();
  expect(findStep(secret, '', now)).toBeUndefined();
});

test('a secret is written in base 32 as apps read it', () => {
  // RFC 4648, section 10.
  expect(toBase32(Buffer.from('foobar'))).toBe('MZXW6YTBOI');
  expect(toBase32(Buffer.from('fooba'))).toBe('MZXW6YTB');
});
