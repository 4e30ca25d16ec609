/** Stores and checks the one password of the administrator, as a scrypt hash. */
import { randomInt } from 'node:crypto';
import { hashPassword, matchesPassword, type PasswordHash } from './password-hash.ts';
import type { Stores } from './stores.ts';

/** The administrator's password. */
export interface AdminPassword {
  /** Resolves to true for the password. Takes the same time in all cases, also when there is no password yet. */
  check(password: string): Promise<boolean>;
  /** Replaces the password; does nothing when it is the same. */
  set(password: string): Promise<void>;
  /** Makes a random password when there is none, and returns it, which is possible only then. */
  ensure(): Promise<string | undefined>;
  /** Returns a text that changes with the password, so that sessions of an earlier password end. Undefined without a password. */
  generation(): Promise<string | undefined>;
}

const namespace = 'admin-password';
const entry = 'password';

/** Opens the password in these stores. */
export function openAdminPassword(stores: Stores): AdminPassword {
  const kept = stores.namespace<PasswordHash>(namespace);

  const check = async (password: string): Promise<boolean> =>
    matchesPassword(password, await kept.get(entry));

  return {
    check,
    async set(password) {
      // Does not compare where there is no password, because that would hash twice.
      if (!(await kept.has(entry)) || !(await check(password)))
        await kept.set(entry, await hashPassword(password));
    },
    async ensure() {
      if (await kept.has(entry)) return undefined;
      const password = randomPassword();
      // Another gateway may have set a password meanwhile: only the stored one is returned.
      return (await stores.add(namespace, entry, await hashPassword(password))) ? password : undefined;
    },
    generation: async () => (await kept.get(entry))?.salt,
  };
}

/** Letters and digits without those that look alike; 24 of these 55 have 138 bits. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz';

function randomPassword(): string {
  const groups = Array.from({ length: 4 }, () =>
    Array.from({ length: 6 }, () => alphabet.charAt(randomInt(alphabet.length))).join(''),
  );
  return groups.join('-');
}
