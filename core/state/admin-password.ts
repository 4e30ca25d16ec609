import { randomInt } from 'node:crypto';
import { hashPassword, matchesPassword, type PasswordHash } from './password-hash.ts';
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

const namespace = 'admin-password';
const entry = 'password';

/** The admin password kept in these stores. */
export function openAdminPassword(stores: Stores): AdminPassword {
  const kept = stores.namespace<PasswordHash>(namespace);

  const check = async (password: string): Promise<boolean> =>
    matchesPassword(password, await kept.get(entry));

  return {
    check,
    async set(password) {
      // Where there is none, nothing is compared: this is no guess, and takes long enough once.
      if (!(await kept.has(entry)) || !(await check(password)))
        await kept.set(entry, await hashPassword(password));
    },
    async ensure() {
      if (await kept.has(entry)) return undefined;
      const password = randomPassword();
      // Another gateway may have started meanwhile: only the password that stands is shown to anybody.
      return (await stores.add(namespace, entry, await hashPassword(password))) ? password : undefined;
    },
    generation: async () => (await kept.get(entry))?.salt,
  };
}

/** Without letters and digits that look alike; 24 of 55 are 138 bits. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz';

function randomPassword(): string {
  const groups = Array.from({ length: 4 }, () =>
    Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join(''),
  );
  return groups.join('-');
}
