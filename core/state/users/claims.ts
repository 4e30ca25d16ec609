/** Claims of emails, identities and members, so that each belongs to one user even if several gateways write at once. */
import { hash } from 'node:crypto';
import type { NewEntry, Stores } from '../stores.ts';
import { UserConflict } from './index.ts';
import type { UserRecord } from './records.ts';

const NAMESPACE = 'user-claims';

/** Age in milliseconds after which a claim that its user does not hold is stale: left over from a process that died. */
const staleMs = 60_000;

interface Claim {
  readonly user: string;
  readonly at: number;
}

type Claiming = Pick<UserRecord, 'email' | 'identities' | 'member'>;

/** Returns the names of a user's claims, with the text for the error when another user holds one. */
function claimsOf({ email, identities, member }: Claiming): ReadonlyMap<string, string> {
  const all = new Map([
    [`email:${email}`, `the email ${email}`],
    [`member:${member}`, `the member ${member}`],
  ]);
  for (const { issuer, subject } of identities)
    all.set(`identity:${hash('sha256', JSON.stringify([issuer, subject]))}`, 'this identity');
  return all;
}

/** Claims of unique values. A claim is written before its user and removed after it. */
export class UserClaims {
  readonly #stores: Stores;
  readonly #read: (id: string) => Promise<UserRecord | undefined>;

  constructor(stores: Stores, read: (id: string) => Promise<UserRecord | undefined>) {
    this.#stores = stores;
    this.#read = read;
  }

  /** Returns the entries of new claims, to be written together with the user. Sorted, because users may be created at the same time. */
  entriesOf(user: string, wanted: Claiming): readonly NewEntry[] {
    const value: Claim = { user, at: Date.now() };
    return [...claimsOf(wanted).keys()].toSorted().map((key) => ({ namespace: NAMESPACE, key, value }));
  }

  /** Claims all unique values of a user. Throws a {@link UserConflict} when another user holds one, and then releases the new claims. */
  async take(user: string, wanted: Claiming): Promise<readonly string[]> {
    const taken: string[] = [];
    try {
      for (const [name, words] of claimsOf(wanted)) {
        // oxlint-disable-next-line no-await-in-loop -- a few, and the first refusal ends it
        if (await this.#takeOne(name, user, words)) taken.push(name);
      }
    } catch (error) {
      await this.release(user, taken);
      throw error;
    }
    return taken;
  }

  /** Releases claims by name if they belong to this user. */
  async release(user: string, names: readonly string[]): Promise<void> {
    const kept = this.#stores.namespace<Claim>(NAMESPACE);
    // oxlint-disable-next-line no-await-in-loop -- a few
    for (const name of names) if ((await kept.get(name))?.user === user) await kept.delete(name);
  }

  /** Releases claims of `before` that `now` does not have. */
  async releaseOld(user: string, before: Claiming, now?: Claiming): Promise<void> {
    const held = now === undefined ? new Map<string, string>() : claimsOf(now);
    await this.release(
      user,
      [...claimsOf(before).keys()].filter((name) => !held.has(name)),
    );
  }

  /** Returns true when the claim is new, false when this user already held it. */
  async #takeOne(name: string, user: string, words: string): Promise<boolean> {
    const claim: Claim = { user, at: Date.now() };
    if (await this.#stores.add<Claim>(NAMESPACE, name, claim)) return true;
    const found = await this.#stores.namespace<Claim>(NAMESPACE).get(name);
    if (found?.user === user) return false;
    const holder = found === undefined ? undefined : await this.#read(found.user);
    const isHeld = holder !== undefined && claimsOf(holder).has(name);
    const isStale = found !== undefined && !isHeld && Date.now() - found.at > staleMs;
    const taken =
      isStale &&
      (await this.#stores.change<Claim>(NAMESPACE, name, (current) =>
        current.user === found.user && current.at === found.at ? { value: claim } : undefined,
      ));
    if (taken === false || taken === undefined) throw new UserConflict(`Another user has ${words}.`);
    return true;
  }
}
