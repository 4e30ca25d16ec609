import { randomBytes, randomInt, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import type { Stores } from './stores.ts';

/** The one password of whoever runs the gateway. Only its scrypt hash is stored. */
export interface AdminPassword {
  /** Whether this is the password. Takes the same time whatever the answer, also when there is no password yet. */
  check(password: string): Promise<boolean>;
  /** Puts this password in place of the one before; nothing happens when it is the same. */
  set(password: string): Promise<void>;
  /** Makes a random password when there is none, and returns it this once. */
  ensure(): Promise<string | undefined>;
  /** A text that changes whenever the password does: sessions that began under another are over. Undefined without a password. */
  generation(): Promise<string | undefined>;
}

/** A password as it is stored; bytes in base64. */
interface StoredPassword {
  readonly salt: string;
  readonly hash: string;
  readonly cost: number;
}

/** 32 MiB and some 50 milliseconds for each guess. */
const cost = 2 ** 15;
const length = 32;
const namespace = 'admin-password';
const entry = 'password';

/** What is compared with while there is no password. */
const nobody: StoredPassword = {
  salt: randomBytes(16).toString('base64'),
  hash: randomBytes(length).toString('base64'),
  cost,
};

/** The admin password kept in these stores. */
export function openAdminPassword(stores: Stores): AdminPassword {
  const kept = stores.namespace<StoredPassword>(namespace);

  const check = async (password: string): Promise<boolean> => {
    const stored = await kept.get(entry);
    const { salt, hash, cost: costThen } = stored ?? nobody;
    const found = await derive(password, Buffer.from(salt, 'base64'), costThen);
    return timingSafeEqual(found, Buffer.from(hash, 'base64')) && stored !== undefined;
  };

  const make = async (password: string): Promise<StoredPassword> => {
    const salt = randomBytes(16);
    const hash = await derive(password, salt, cost);
    return { salt: salt.toString('base64'), hash: hash.toString('base64'), cost };
  };

  return {
    check,
    async set(password) {
      // Where there is none, nothing is compared: this is no guess, and takes long enough once.
      if (!(await kept.has(entry)) || !(await check(password))) await kept.set(entry, await make(password));
    },
    async ensure() {
      if (await kept.has(entry)) return undefined;
      const password = randomPassword();
      // Another gateway may have started meanwhile: only the password that stands is shown to anybody.
      return (await stores.add(namespace, entry, await make(password))) ? password : undefined;
    },
    generation: async () => (await kept.get(entry))?.salt,
  };
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

/** Without letters and digits that look alike; 24 of 55 are 138 bits. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz';

function randomPassword(): string {
  const groups = Array.from({ length: 4 }, () =>
    Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join(''),
  );
  return groups.join('-');
}
