/** Codes of a second factor, as an authenticator app makes them. */
import { codeOf, stepAt } from '../../core/state/users/totp.ts';

/** Returns the bytes of a secret in base 32. */
function bytesOf(secret: string): Buffer {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = Array.from(secret, (letter) => letters.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

/** Returns the code of a step. */
export function appCode(secret: string, step = stepAt(Date.now())): string {
  return codeOf(bytesOf(secret), step);
}
