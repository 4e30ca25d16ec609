/** Creates, changes and deletes users for a directory. */
import type { JsonValue } from 'sluice';
import type { User, UserChanges } from '../core-types.ts';
import { shown } from '../sign-in/audit.ts';
import { accessOf, noAccess, type Access } from '../sign-in/rules.ts';
import { commonAttributes, userAttributes } from './attributes.ts';
import type { Directory, UserRow } from './directory.ts';
import { ScimError } from './errors.ts';
import type { NoteChange } from './note.ts';
import type { ScimOptions } from './options.ts';
import { patched } from './patch.ts';
import { emailOf, nameToShow, readUser, type GivenUser } from './read.ts';

/** Changes users. Each method runs under the lock, with memory up to date. */
export class ScimUsers {
  readonly #directory: Directory;
  readonly #options: ScimOptions;

  constructor(directory: Directory, options: ScimOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  find(id: string): User {
    const user = this.#directory.users.find(id);
    if (user === undefined) throw new ScimError(404, `There is no user ${id.slice(0, 100)}.`);
    return user;
  }

  async create(body: JsonValue, note: NoteChange): Promise<User> {
    const given = readUser(body);
    this.#checkUnique(given, undefined);
    const { role, organisation } = this.accessIn(new Set());
    const user = await this.#directory.users.create({
      email: emailOf(given),
      name: nameToShow(given),
      enabled: given.active,
      ...(given.externalId === undefined ? {} : { externalId: given.externalId }),
      ...(role === undefined ? {} : { role }),
      ...(organisation === undefined ? {} : { organisation }),
    });
    await this.#directory.userRows.set(user.id, rowOf(given));
    await this.#keepKeys(user, true);
    await note('user-create', user.id, { after: shown(user) });
    return user;
  }

  async replace(user: User, body: JsonValue, note: NoteChange): Promise<User> {
    const given = readUser(body);
    this.#checkUnique(given, user);
    const next: UserChanges = {
      email: emailOf(given).toLowerCase(),
      name: nameToShow(given),
      externalId: given.externalId,
      enabled: given.active,
    };
    const changes = Object.fromEntries(
      Object.entries(next).filter(([name, value]) => user[name as keyof User] !== value),
    ) as UserChanges;
    const hadKeys = this.#hasKeys(user);
    const changed =
      Object.keys(changes).length === 0 ? user : await this.#directory.users.update(user.id, changes);
    await this.#directory.userRows.set(user.id, rowOf(given));
    if (changed.enabled !== user.enabled) await this.#keepKeys(changed, hadKeys);
    await note('user-update', user.id, { before: shown(user), after: shown(changed) });
    return changed;
  }

  patch(user: User, body: JsonValue, note: NoteChange): Promise<User> {
    const now = this.#directory.userResource(user, '');
    return this.replace(user, patched(now, body, [...userAttributes, ...commonAttributes]), note);
  }

  async remove(user: User, note: NoteChange): Promise<void> {
    const hadKeys = this.#hasKeys(user);
    await this.#directory.users.remove(user.id);
    await this.#keepKeys(user, hadKeys);
    await this.#directory.userRows.delete(user.id);
    await note('user-delete', user.id, { before: shown(user) });
  }

  /** Returns the role and organisation for the names of groups; empty if no rule names one of them. */
  accessIn(groups: ReadonlySet<string>): Access {
    const rules = this.#options.rules;
    if (rules.length === 0) return {};
    const verdict = accessOf(rules, groups, this.#directory.findOwner);
    if (verdict.missingOrganisation !== undefined)
      throw new ScimError(
        400,
        'A rule of the gateway names an organisation that does not exist.',
        'invalidValue',
      );
    return verdict.access ?? noAccess(rules);
  }

  #checkUnique(given: GivenUser, self: User | undefined): void {
    const { users } = this.#directory;
    const named = this.#directory.byUserName(given.userName);
    for (const other of [named, users.byEmail(emailOf(given).toLowerCase())])
      if (other !== undefined && other.id !== self?.id)
        throw new ScimError(409, 'Another user has this userName or email.', 'uniqueness');
    const { externalId } = given;
    const same = externalId === undefined ? undefined : users.byExternalId(externalId);
    if (same !== undefined && same.id !== self?.id)
      throw new ScimError(409, 'Another user has this externalId.', 'uniqueness');
  }

  /** Returns true when the member that owns the user's keys is switched on. */
  #hasKeys({ member }: User): boolean {
    return this.#directory.owners.find(member)?.enabled === true;
  }

  /** Restores the state of the member, which a change of its user has switched, if the setting keeps API keys. */
  async #keepKeys({ member }: User, enabled: boolean): Promise<void> {
    if (this.#options.keysOfDeactivated === 'off') return;
    const { owners } = this.#directory;
    const owner = owners.find(member);
    if (owner !== undefined && owner.enabled !== enabled) await owners.update(member, { enabled });
  }
}

function rowOf({ userName, name, displayName, emails }: GivenUser): UserRow {
  return {
    userName,
    ...(name === undefined ? {} : { name }),
    ...(displayName === undefined ? {} : { displayName }),
    emails,
    changedAt: Date.now(),
  };
}
