/** Creates, changes and deletes groups for a directory: each is a team of the gateway. */
import type { JsonObject, JsonValue, Owner } from 'sluice';
import type { TeamMembership, User, UserChanges } from '../core-types.ts';
import { commonAttributes, groupAttributes } from './attributes.ts';
import type { Directory } from './directory.ts';
import { ScimError } from './errors.ts';
import type { NoteChange } from './note.ts';
import type { ScimOptions } from './options.ts';
import { patched } from './patch.ts';
import { readGroup, type GivenGroup } from './read.ts';
import type { ScimUsers } from './users.ts';

/** Maximum number of users who join or leave a team in one request, because each is a write. */
const mostChanges = 2_000;

/** Changes groups. Each method runs under the lock, with memory up to date. */
export class ScimGroups {
  readonly #directory: Directory;
  readonly #users: ScimUsers;
  readonly #options: ScimOptions;

  constructor(directory: Directory, users: ScimUsers, options: ScimOptions) {
    this.#directory = directory;
    this.#users = users;
    this.#options = options;
  }

  find(id: string): Owner {
    const team = this.#directory.group(id);
    if (team === undefined) throw new ScimError(404, `There is no group ${id.slice(0, 100)}.`);
    return team;
  }

  /** Turns a team into a group: the team with this name if it is no group yet, otherwise a new one. */
  async create(body: JsonValue, note: NoteChange): Promise<Owner> {
    const given = readGroup(body);
    const { owners, groupRows } = this.#directory;
    this.#checkName(given.displayName, undefined);
    const members = this.#known(given.members ?? []);
    const same = owners.list().filter(({ kind, name }) => kind === 'team' && name === given.displayName);
    const adopted = same.length === 1 ? same[0] : undefined;
    this.#checkNumber(adopted, new Set(members), false);
    const team = adopted ?? (await owners.create({ kind: 'team', name: given.displayName }));
    await groupRows.set(team.id, {
      ...externalIdOf(given),
      isMade: adopted === undefined,
      changedAt: Date.now(),
    });
    const joined = await this.#setMembers(team, new Set(members), note, adopted === undefined);
    await note('owner-create', team.id, { after: { ...shownTeam(team), members: joined } });
    return team;
  }

  async replace(team: Owner, body: JsonValue, note: NoteChange): Promise<Owner> {
    const given = readGroup(body);
    const { owners, groupRows } = this.#directory;
    this.#checkName(given.displayName, team);
    // A PUT without members is of a group without members.
    const members = this.#known(given.members ?? []);
    this.#checkNumber(team, new Set(members), given.displayName !== team.name);
    const changed =
      given.displayName === team.name ? team : await owners.update(team.id, { name: given.displayName });
    const row = groupRows.get(team.id);
    await groupRows.set(team.id, {
      ...externalIdOf(given),
      isMade: row?.isMade ?? false,
      changedAt: Math.max(Date.now(), (row?.changedAt ?? 0) + 1),
    });
    await this.#setMembers(changed, new Set(members), note, changed.name !== team.name);
    await note('owner-update', team.id, { before: shownTeam(team), after: shownTeam(changed) });
    return changed;
  }

  patch(team: Owner, body: JsonValue, note: NoteChange): Promise<Owner> {
    const members = this.#directory.membersByTeam().get(team.id) ?? [];
    const now = this.#directory.groupResource(team, members, '');
    return this.replace(team, patched(now, body, [...groupAttributes, ...commonAttributes]), note);
  }

  /** Empties a team, and deletes it where SCIM has made it. */
  async remove(team: Owner, note: NoteChange): Promise<void> {
    const { owners, groupRows } = this.#directory;
    const isMade = groupRows.get(team.id)?.isMade === true;
    await this.#setMembers(team, new Set(), note, true);
    await groupRows.delete(team.id);
    if (isMade) await owners.remove(team.id);
    await note('owner-delete', team.id, { before: shownTeam(team) });
  }

  #checkName(name: string, self: Owner | undefined): void {
    const sought = name.toLowerCase();
    const other = this.#directory.groups().find((one) => one.name.toLowerCase() === sought);
    if (other !== undefined && other.id !== self?.id)
      throw new ScimError(409, 'Another group has this displayName.', 'uniqueness');
  }

  #known(ids: readonly string[]): readonly string[] {
    const unknown = ids.find((id) => this.#directory.users.find(id) === undefined);
    if (unknown !== undefined)
      throw new ScimError(400, `There is no user ${unknown.slice(0, 100)}.`, 'invalidValue');
    return ids;
  }

  /** Throws 413 before anything is written when a request changes too many users. A group that is deleted may have any number. */
  #checkNumber(team: Owner | undefined, wanted: ReadonlySet<string>, isAll: boolean): void {
    if (this.#touched(team, wanted, isAll).length > mostChanges)
      throw new ScimError(413, `A request changes at most ${mostChanges} members: send fewer at a time.`);
  }

  /** Ids of the users that may have to be changed so that exactly the wanted ones are in the team; `team`: undefined for a new one. */
  #touched(team: Owner | undefined, wanted: ReadonlySet<string>, isAll: boolean): readonly string[] {
    const present = team === undefined ? [] : (this.#directory.membersByTeam().get(team.id) ?? []);
    const held = new Set(present.map(({ id }) => id));
    return [
      ...[...held].filter((id) => isAll || !wanted.has(id)),
      ...[...wanted].filter((id) => !held.has(id)),
    ];
  }

  /** Makes exactly these users the members of the team. Returns their number. `isAll`: the roles of members who stay may change too. */
  async #setMembers(
    team: Owner,
    wanted: ReadonlySet<string>,
    note: NoteChange,
    isAll: boolean,
  ): Promise<number> {
    for (const id of this.#touched(team, wanted, isAll)) {
      // oxlint-disable-next-line no-await-in-loop -- one at a time, so that calls get to the database
      await this.#setMember(id, team.id, wanted.has(id), note);
    }
    return wanted.size;
  }

  async #setMember(id: string, team: string, isMember: boolean, note: NoteChange): Promise<void> {
    // Read at each turn, because an administrator may have changed the user since this request began.
    const user = await this.#directory.users.current(id);
    if (user === undefined) return;
    const others = user.teams.filter((one) => one.team !== team);
    const own = user.teams.find((one) => one.team === team) ?? { team, lead: false };
    const joined = isMember ? [...others, own] : others;
    const names = new Set(joined.flatMap((one) => this.#directory.group(one.team)?.name ?? []));
    const { role, organisation } = this.#users.accessIn(names);
    const isRuled = this.#options.rules.some(
      (rule) => rule.role !== undefined || rule.organisation !== undefined,
    );
    const changes: UserChanges = {
      teams: joined.map((one) => this.#ledBy(one)),
      ...(isRuled ? { role, organisation } : {}),
    };
    const needed = Object.fromEntries(
      Object.entries(changes).filter(
        ([name, value]) => JSON.stringify(value) !== JSON.stringify(user[name as keyof User]),
      ),
    ) as UserChanges;
    if (Object.keys(needed).length === 0) return;
    const changed = await this.#directory.users.update(id, needed);
    await note('user-update', id, { before: accessShown(user), after: accessShown(changed) });
  }

  /** Returns true when the user leads the team, where a rule is about that. */
  #ledBy({ team, lead }: TeamMembership): TeamMembership {
    const name = this.#directory.group(team)?.name;
    const rule = this.#options.rules.find((one) => one.group === name && one.lead !== undefined);
    return { team, lead: rule?.lead ?? lead };
  }
}

function externalIdOf({ externalId }: GivenGroup): { readonly externalId?: string } {
  return externalId === undefined ? {} : { externalId };
}

function shownTeam({ id, name }: Owner): JsonObject {
  return { id, name };
}

function accessShown({ role, organisation, teams }: User): JsonObject {
  return { role, organisation: organisation ?? null, teams: teams.map((one) => ({ ...one })) };
}
