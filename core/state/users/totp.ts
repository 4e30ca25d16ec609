/** One-time codes of a second factor: TOTP (RFC 6238) with SHA-1, 30 seconds and 6 digits, as every authenticator app knows it. */
import { createHmac, timingSafeEqual } from 'node:crypto';

const stepMs = 30_000;
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Returns the number of the step of a time. */
export function stepAt(now: number): number {
  return Math.floor(now / stepMs);
}

/** Returns the code of a step. */
export function codeOf(secret: Uint8Array, step: number, digits = 6): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac('sha1', secret).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 15;
  const number = digest.readUInt32BE(offset) & 0x7f_ff_ff_ff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

/** Returns the step whose code this is: the present one, the one before or the one after, because clocks differ. */
export function findStep(secret: Uint8Array, code: string, now: number): number | undefined {
  const given = Buffer.from(code);
  let found: number | undefined;
  for (const step of [stepAt(now) - 1, stepAt(now), stepAt(now) + 1]) {
    const expected = Buffer.from(codeOf(secret, step));
    if (given.length === expected.length && timingSafeEqual(given, expected)) found = step;
  }
  return found;
}

/** Returns bytes in base 32 without padding, as apps take them. */
export function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => base32.charAt(Number.parseInt(group.padEnd(5, '0'), 2))).join('');
}
