/** Users in the memory of a process, by what they are found by. */
import type { Identity, User } from './index.ts';

/** The users that this process knows of. */
export class UserMemory {
  readonly #users = new Map<string, User>();
  readonly #emails = new Map<string, string>();
  readonly #identities = new Map<string, string>();
  readonly #externalIds = new Map<string, string>();
  #withPassword = 0;

  get size(): number {
    return this.#users.size;
  }

  /** Number of users that have a password. */
  get withPassword(): number {
    return this.#withPassword;
  }

  ids(): readonly string[] {
    return [...this.#users.keys()];
  }

  find(id: string): User | undefined {
    return this.#users.get(id);
  }

  byEmail(email: string): User | undefined {
    return this.#named(this.#emails, email.trim().toLowerCase());
  }

  byIdentity(identity: Identity): User | undefined {
    return this.#named(this.#identities, nameOf(identity));
  }

  byExternalId(externalId: string): User | undefined {
    return this.#named(this.#externalIds, externalId);
  }

  /** All of them, the newest first. */
  list(): readonly User[] {
    return [...this.#users.values()].toSorted((one, other) => other.createdAt - one.createdAt);
  }

  /** Puts a user in the place of what was known under this id; undefined takes it out. */
  put(id: string, user: User | undefined): void {
    const before = this.#users.get(id);
    this.#withPassword += Number(user?.hasPassword === true) - Number(before?.hasPassword === true);
    if (before !== undefined) {
      forget(this.#emails, before.email, id);
      for (const identity of before.identities) forget(this.#identities, nameOf(identity), id);
      if (before.externalId !== undefined) forget(this.#externalIds, before.externalId, id);
    }
    if (user === undefined) {
      this.#users.delete(id);
      return;
    }
    this.#users.set(id, user);
    this.#emails.set(user.email, id);
    for (const identity of user.identities) this.#identities.set(nameOf(identity), id);
    if (user.externalId !== undefined) this.#externalIds.set(user.externalId, id);
  }

  #named(names: ReadonlyMap<string, string>, name: string): User | undefined {
    const id = names.get(name);
    return id === undefined ? undefined : this.#users.get(id);
  }
}

function nameOf({ issuer, subject }: Identity): string {
  return JSON.stringify([issuer, subject]);
}

function forget(names: Map<string, string>, name: string, id: string): void {
  if (names.get(name) === id) names.delete(name);
}
