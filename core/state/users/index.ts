/** The contract of the store of users: people who sign in to the admin API and the page. */

/**
 * Role of a user. An `admin` changes everything, an `auditor` reads everything; both only within `organisation` where the user has one. A
 * `member` sees its own data, and sees and manages everything of the teams that it leads.
 */
export type UserRole = 'admin' | 'auditor' | 'member';

/** A team of a user. */
export interface TeamMembership {
  /** Id of the owner, `team_…`. */
  readonly team: string;
  /** True when the user leads the team: sees its usage, and manages its keys within the limits of the team. */
  readonly lead: boolean;
}

/** A person, as a provider of identities names them. */
export interface Identity {
  /** The issuer's URL, as its discovery document writes it. */
  readonly issuer: string;
  /** The claim `sub`. */
  readonly subject: string;
}

/** A person who may sign in. Times are in milliseconds since 1970. */
export interface User {
  /** `usr_` and 16 characters; never changes and is safe to log. */
  readonly id: string;
  /** In lower case. No two users have the same. */
  readonly email: string;
  /** For people. */
  readonly name: string;
  readonly role: UserRole;
  /** Id of the organisation to which the user is restricted. */
  readonly organisation?: string;
  readonly teams: readonly TeamMembership[];
  /** Id of the owner of kind `member` to whom the keys of this person belong. */
  readonly member: string;
  /** False: the user cannot sign in, and its sessions are over. */
  readonly enabled: boolean;
  readonly identities: readonly Identity[];
  /** Name of the person at the directory that provisions users (SCIM's `externalId`). */
  readonly externalId?: string;
  /** True when there is a password, which is never shown. */
  readonly hasPassword: boolean;
  /** True when a second factor is confirmed. */
  readonly hasSecondFactor: boolean;
  readonly createdAt: number;
  readonly lastSignInAt?: number;
  /** Changes when the password, the role, the organisation or `enabled` does: sessions that began under another stamp are over. */
  readonly stamp: string;
}

/** Thrown for a change that is not possible. The message is a sentence for people. */
export class UserMistake extends Error {}

/** Thrown where another user has what is to be this user's alone: an email, an identity or a member. */
export class UserConflict extends UserMistake {}

/** The fields of a new user. A `member` that is left out is made, with the defaults for new members. */
export interface NewUser {
  readonly email: string;
  readonly name?: string;
  readonly role?: UserRole;
  readonly organisation?: string;
  readonly teams?: readonly TeamMembership[];
  readonly member?: string;
  readonly identities?: readonly Identity[];
  readonly externalId?: string;
  readonly enabled?: boolean;
}

/** The fields to change. `undefined` takes away what may be absent. */
export type UserChanges = { readonly [Field in keyof NewUser]?: NewUser[Field] | undefined };

/**
 * The users of a gateway, shared by all gateways on one database. Each process holds all of them, and follows what anybody writes. Methods
 * that write throw a {@link UserMistake} when a field is wrong, an id is unknown or an email or identity belongs to another user.
 */
export interface Users {
  /** Brings memory up to date with the database. */
  load(): Promise<void>;
  /** As {@link load}, where somebody has written since. */
  refresh(): Promise<void>;
  find(id: string): User | undefined;
  /** As {@link find}, with what other gateways have written until now. */
  current(id: string): Promise<User | undefined>;
  byEmail(email: string): User | undefined;
  byIdentity(identity: Identity): User | undefined;
  byExternalId(externalId: string): User | undefined;
  /** Returns true when a user has a password. */
  hasPasswords(): boolean;
  /** All of them, the newest first. */
  list(): readonly User[];
  create(user: NewUser): Promise<User>;
  /**
   * Changes a user. `check` gets the user as it is when the change is made, and may throw. A change of `enabled` or `organisation` changes
   * the member of the user too.
   */
  update(id: string, changes: UserChanges, check?: (current: User) => void): Promise<User>;
  /** Removes a user, and ends its sessions. Its member and their keys stay, switched off. */
  remove(id: string): Promise<User>;
  /** Notes that somebody has signed in. */
  signedIn(id: string): Promise<void>;
}
