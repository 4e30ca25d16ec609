/** Hashes of passwords. */
import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';

/** A password as it is stored; bytes in base64. */
export interface PasswordHash {
  readonly salt: string;
  readonly hash: string;
  readonly cost: number;
}

/** 32 MiB and some 50 milliseconds for each guess. */
const cost = 2 ** 15;
const length = 32;

/** Compared with where there is no password, so that the answer takes as long. */
const nobody: PasswordHash = {
  salt: randomBytes(16).toString('base64'),
  hash: randomBytes(length).toString('base64'),
  cost,
};

/** Returns the hash of a password, with a new salt. */
export async function hashPassword(password: string): Promise<PasswordHash> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, cost);
  return { salt: salt.toString('base64'), hash: hash.toString('base64'), cost };
}

/** Returns true when this is the password. Takes the same time whatever the result, also where there is no password. */
export async function matchesPassword(password: string, stored: PasswordHash | undefined): Promise<boolean> {
  const { salt, hash, cost: costThen } = stored ?? nobody;
  const found = await derive(password, Buffer.from(salt, 'base64'), costThen);
  return timingSafeEqual(found, Buffer.from(hash, 'base64')) && stored !== undefined;
}

function derive(password: string, salt: Buffer, N: number): Promise<Buffer> {
  const options: ScryptOptions = { N, r: 8, p: 1, maxmem: 256 * N * 8 };
  return new Promise((resolve, reject) => {
    // The same letters may be typed in several ways.
    scrypt(password.normalize('NFKC'), salt, length, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}
