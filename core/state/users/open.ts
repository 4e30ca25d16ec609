/** Users, in the database and in the memory of each process. */
import { randomBytes } from 'node:crypto';
import type { MemberDefaults } from '../../settings/members.ts';
import { present, randomBase62 } from '../api-keys/records.ts';
import type { Owners } from '../owners/index.ts';
import { FollowedEntries } from '../followed-entries.ts';
import type { NewEntry, ReportError, Stores } from '../stores.ts';
import { UserClaims } from './claims.ts';
import {
  UserConflict,
  UserMistake,
  type Identity,
  type NewUser,
  type User,
  type UserChanges,
  type Users,
} from './index.ts';
import { checkedUser } from './checked.ts';
import { changeMember, newMember, switchBack } from './member.ts';
import { UserMemory } from './memory.ts';
import { maxUsers, parseRecord, userOf, type UserRecord } from './records.ts';

/** Namespace of their entries, by id. */
const NAMESPACE = 'users';

/** Between two notes of when somebody has signed in, in milliseconds. */
const signInNoteMs = 60_000;

/** Parts that users are opened with. */
export interface UserTools {
  readonly stores: Stores;
  readonly owners: Owners;
  /** Fields of the members that are made for new users. */
  readonly defaults?: MemberDefaults;
  /** Gets the errors of records that cannot be read. */
  readonly report?: ReportError;
}

/** Callbacks of a change of a record. */
interface Beside {
  readonly prepare?: (planned: UserRecord) => Promise<void>;
  readonly refused?: () => Promise<void>;
}

/** Opens the users that are kept in these stores. */
export function openUsers(tools: UserTools): StoredUsers {
  return new StoredUsers(tools);
}

/** See {@link Users}. */
export class StoredUsers implements Users {
  readonly #stores: Stores;
  readonly #owners: Owners;
  readonly #defaults: MemberDefaults;
  readonly #report: ReportError;
  readonly #claims: UserClaims;
  readonly #memory = new UserMemory();
  readonly #followed: FollowedEntries<User>;

  constructor({ stores, owners, defaults = {}, report = () => {} }: UserTools) {
    this.#stores = stores;
    this.#owners = owners;
    this.#defaults = defaults;
    this.#report = report;
    this.#claims = new UserClaims(stores, (id) => this.readRecord(id));
    this.#followed = new FollowedEntries(stores, NAMESPACE, {
      keys: () => this.#memory.ids(),
      put: (id, user) => this.#memory.put(id, user),
      decode: (id, value) => {
        const record = this.#decode(id, value);
        return record && userOf(record);
      },
    });
  }

  load(): Promise<void> {
    return this.#followed.refresh();
  }

  refresh(): Promise<void> {
    return this.#followed.refresh();
  }

  find(id: string): User | undefined {
    return this.#memory.find(id);
  }

  async current(id: string): Promise<User | undefined> {
    const record = await this.readRecord(id);
    return record === undefined ? undefined : userOf(record);
  }

  byEmail(email: string): User | undefined {
    return this.#memory.byEmail(email);
  }

  byIdentity(identity: Identity): User | undefined {
    return this.#memory.byIdentity(identity);
  }

  byExternalId(externalId: string): User | undefined {
    return this.#memory.byExternalId(externalId);
  }

  hasPasswords(): boolean {
    return this.#memory.withPassword > 0;
  }

  list(): readonly User[] {
    return this.#memory.list();
  }

  async create({ member, ...given }: NewUser): Promise<User> {
    if (this.#memory.size >= maxUsers) throw new UserMistake(`There are ${maxUsers} users already.`);
    await this.#owners.refresh();
    const role = given.role ?? 'member';
    // An administrator without an organisation is one of the whole gateway: the default must not make it less.
    const organisation =
      given.organisation ??
      (role === 'member' && member === undefined ? this.#defaults.organisation : undefined);
    const draft = checkedUser(this.#owners, {
      enabled: true,
      teams: [],
      identities: [],
      ...present({ ...given, organisation }),
      role,
      name: given.name ?? given.email,
      id: `usr_${randomBase62(16)}`,
      member: member ?? 'new',
      createdAt: Date.now(),
      stamp: newStamp(),
      secrets: {},
    });
    await this.#checkFree(draft, member === undefined);
    const made = member === undefined ? await newMember(this.#owners, this.#defaults, draft) : undefined;
    const record = { ...draft, member: member ?? made?.owner.id ?? '' };
    await this.#write(record, made === undefined ? [] : [made.entry]);
    made?.written();
    this.#followed.written(record.id, userOf(record));
    return userOf(record);
  }

  /** Writes a user with its claims and other entries, all or none. */
  async #write(record: UserRecord, others: readonly NewEntry[]): Promise<void> {
    const entries = [...others, { namespace: NAMESPACE, key: record.id, value: record }];
    if (await this.#stores.addAll([...this.#claims.entriesOf(record.id, record), ...entries])) return;
    // Another user has a claim, which throws, or one is left over from a process that died.
    const taken = await this.#claims.take(record.id, record);
    try {
      await this.#stores.addAll(entries);
    } catch (error) {
      await this.#claims.release(record.id, taken).catch(() => {});
      throw error;
    }
  }

  async update(id: string, changes: UserChanges, check?: (current: User) => void): Promise<User> {
    const make = (current: UserRecord): object => {
      check?.(userOf(current));
      return { ...current, ...changes };
    };
    let switchedOff: string | undefined;
    const { before, after } = await this.change(id, make, {
      // The member is switched off first, so that a failure in between leaves no working keys of a disabled user. A retry completes the change.
      prepare: async ({ member }) => {
        if (changes.enabled === false && (await changeMember(this.#owners, member, { enabled: false })))
          switchedOff = member;
      },
      refused: async () => {
        if (switchedOff !== undefined) await switchBack(this.#owners, switchedOff, () => this.#isOff(id));
      },
    });
    const { organisation, enabled } = after;
    await changeMember(this.#owners, after.member, {
      ...(before.organisation === organisation ? {} : { organisation }),
      ...(changes.enabled === undefined ? {} : { enabled }),
    });
    return userOf(after);
  }

  async remove(id: string): Promise<User> {
    const record = await this.readRecord(id);
    if (record === undefined) throw unknownUser(id);
    await changeMember(this.#owners, record.member, { enabled: false });
    if (!(await this.#stores.namespace<unknown>(NAMESPACE).delete(id))) throw unknownUser(id);
    this.#followed.written(id, undefined);
    await this.#claims.releaseOld(id, record);
    return userOf(record);
  }

  async signedIn(id: string): Promise<void> {
    const now = Date.now();
    const user = await this.current(id);
    if (user === undefined || now - (user.lastSignInAt ?? 0) < signInNoteMs) return;
    await this.change(id, (current) => ({ ...current, lastSignInAt: now }));
  }

  stop(): Promise<void> {
    return this.#followed.close();
  }

  /** Reads a record from the database. For this folder. */
  async readRecord(id: string): Promise<UserRecord | undefined> {
    if (!/^usr_\w{1,40}$/.test(id)) return undefined;
    const value = await this.#stores.namespace<unknown>(NAMESPACE).get(id);
    return value === undefined ? undefined : this.#decode(id, value);
  }

  /**
   * Changes a record as it is in the database by then. `prepare` runs before, once the change is known to be possible, and `refused` where it
   * proves to be impossible all the same, because somebody has changed the record meanwhile. For this folder. Throws a {@link UserMistake} for
   * an unknown id.
   */
  async change(
    id: string,
    make: (current: UserRecord) => object,
    { prepare, refused }: Beside = {},
  ): Promise<{ readonly before: UserRecord; readonly after: UserRecord }> {
    let result: { readonly before: UserRecord; readonly after: UserRecord } | undefined;
    const known = await this.readRecord(id);
    if (known === undefined) throw unknownUser(id);
    await this.#owners.refresh();
    const planned = checkedUser(this.#owners, this.#remade(known, make(known)), known);
    const taken = await this.#claims.take(id, planned);
    let refusal: unknown;
    try {
      await prepare?.(planned);
      await this.#stores.change<unknown>(NAMESPACE, id, (value) => {
        const before = this.#decode(id, value);
        if (before === undefined) return undefined;
        try {
          const after = checkedUser(this.#owners, this.#remade(before, make(before)), before);
          result = { before, after };
          return { value: after };
        } catch (error) {
          refusal = error;
          throw error;
        }
      });
      if (result === undefined) throw unknownUser(id);
    } catch (error) {
      await this.#claims.release(id, taken);
      // After a failure of the database the record may have been written.
      if (error === refusal) await refused?.();
      throw error;
    }
    await this.#claims.releaseOld(id, result.before, result.after);
    this.#followed.written(id, userOf(result.after));
    return result;
  }

  /** The changed record, with another stamp where its sessions must end. */
  #remade(before: UserRecord, changed: object): object {
    const after: Partial<UserRecord> = present(changed);
    const isOver =
      after.role !== before.role ||
      after.organisation !== before.organisation ||
      after.enabled !== before.enabled ||
      after.secrets?.password?.hash !== before.secrets.password?.hash;
    return {
      ...after,
      id: before.id,
      createdAt: before.createdAt,
      member: after.member ?? before.member,
      stamp: isOver ? newStamp() : before.stamp,
    };
  }

  /** Throws where another user is known to have the email or an identity, before anything is made. */
  async #checkFree({ email, identities }: UserRecord, makesMember: boolean): Promise<void> {
    if (makesMember) await this.refresh();
    if (this.byEmail(email) !== undefined) throw new UserConflict(`Another user has the email ${email}.`);
    if (identities.some((identity) => this.byIdentity(identity) !== undefined))
      throw new UserConflict('Another user has this identity.');
  }

  async #isOff(id: string): Promise<boolean> {
    return (await this.readRecord(id))?.enabled !== true;
  }

  #decode(id: string, value: unknown): UserRecord | undefined {
    const result = parseRecord(value);
    if (result.success && result.data.id === id) return result.data;
    this.#report(new Error(`The user stored as ${id.slice(0, 40)} cannot be read and cannot sign in.`));
    return undefined;
  }
}

function newStamp(): string {
  return randomBytes(9).toString('base64url');
}

function unknownUser(id: string): UserMistake {
  return new UserMistake(`There is no user ${id.slice(0, 100)}.`);
}
