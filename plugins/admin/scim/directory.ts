/** The users and teams of the gateway as SCIM's users and groups, with what SCIM keeps of them beside. */
import { hash } from 'node:crypto';
import type { JsonObject, JsonValue, Owner } from 'sluice';
import type { Owners, Stores, User, Users } from '../core-types.ts';
import { ownerFinder, type FindOwner } from '../sign-in/rules.ts';
import { groupSchema, userSchema } from './attributes.ts';
import type { Email, GivenUser } from './read.ts';
import { FollowedRows } from './rows.ts';

/** Fields of a provisioned user that the gateway has no use for itself. */
export interface UserRow {
  readonly userName: string;
  readonly name?: GivenUser['name'];
  readonly displayName?: string;
  readonly emails: readonly Email[];
  readonly changedAt: number;
}

/** A provisioned group, by the id of its team. */
export interface GroupRow {
  readonly externalId?: string;
  /** True where SCIM has made the team: then it is deleted with the group. */
  readonly isMade: boolean;
  readonly changedAt: number;
}

/** The directory's view of the gateway. */
export class Directory {
  readonly users: Users;
  readonly owners: Owners;
  readonly userRows: FollowedRows<UserRow>;
  readonly groupRows: FollowedRows<GroupRow>;
  #finder: FindOwner | undefined;

  constructor({ stores, users, owners }: { stores: Stores; users: Users; owners: Owners }) {
    this.users = users;
    this.owners = owners;
    this.userRows = new FollowedRows(stores, 'scim-users');
    this.groupRows = new FollowedRows(stores, 'scim-groups');
  }

  /** Brings memory up to date with what other gateways have written. */
  async refresh(): Promise<void> {
    this.#finder = undefined;
    await Promise.all([
      this.users.refresh(),
      this.owners.refresh(),
      this.userRows.refresh(),
      this.groupRows.refresh(),
    ]);
  }

  /** Finds owners by their names, as they were when the request came. */
  get findOwner(): FindOwner {
    return (this.#finder ??= ownerFinder(this.owners.list()));
  }

  /** Returns the user with this name, case-insensitive; undefined when there is none. */
  byUserName(userName: string): User | undefined {
    const sought = userName.toLowerCase();
    for (const [id, row] of this.userRows.entries())
      if (row.userName.toLowerCase() === sought) {
        const user = this.users.find(id);
        if (user !== undefined) return user;
      }
    const same = this.users.byEmail(sought);
    return same === undefined || this.userRows.get(same.id) !== undefined ? undefined : same;
  }

  /** Returns the team of a group; undefined for a team that SCIM does not manage. */
  group(id: string): Owner | undefined {
    const team = this.owners.find(id);
    return team?.kind === 'team' && this.groupRows.get(id) !== undefined ? team : undefined;
  }

  groups(): Owner[] {
    return [...this.groupRows.entries()].flatMap(([id]) => this.group(id) ?? []);
  }

  /** Ids of the users of each team. */
  membersByTeam(): ReadonlyMap<string, User[]> {
    const found = new Map<string, User[]>();
    for (const user of this.users.list())
      for (const { team } of user.teams) {
        const members = found.get(team);
        if (members === undefined) found.set(team, [user]);
        else members.push(user);
      }
    return found;
  }

  /** Returns a user in SCIM's words. `base`: the address that stands before `/Users`. */
  userResource(user: User, base: string): JsonObject {
    const fields = this.userFields(user, base);
    const changed = Math.max(user.createdAt, this.userRows.get(user.id)?.changedAt ?? 0);
    return withMeta(fields, 'User', user.createdAt, changed, `${base}/Users/${user.id}`);
  }

  /** Returns the same as `userResource`, without `meta`. */
  userFields(user: User, base: string): JsonObject {
    const row = this.userRows.get(user.id);
    const groups = user.teams.flatMap(({ team }) => {
      const group = this.group(team);
      return group === undefined
        ? []
        : [{ value: team, $ref: `${base}/Groups/${team}`, display: group.name, type: 'direct' }];
    });
    return {
      schemas: [userSchema],
      id: user.id,
      ...(user.externalId === undefined ? {} : { externalId: user.externalId }),
      userName: row?.userName ?? user.email,
      ...(row?.name === undefined ? {} : { name: { ...row.name } }),
      ...(row === undefined
        ? { displayName: user.name }
        : row.displayName === undefined
          ? {}
          : { displayName: row.displayName }),
      emails: emailsOf(user, row).map((email) => ({ ...email })),
      active: user.enabled,
      ...(groups.length === 0 ? {} : { groups }),
    };
  }

  /** Returns a group in the format of SCIM. `members`: its users; undefined when the request does not need them. */
  groupResource(team: Owner, members: readonly User[] | undefined, base: string): JsonObject {
    const row = this.groupRows.get(team.id);
    const changed = Math.max(team.createdAt, row?.changedAt ?? 0);
    const fields = this.groupFields(team, members, base);
    // The same whether or not the members are shown.
    const version = [team.name, row?.externalId ?? null, changed];
    return withMeta(fields, 'Group', team.createdAt, changed, `${base}/Groups/${team.id}`, version);
  }

  /** Returns the same as `groupResource`, without `meta`. */
  groupFields(team: Owner, members: readonly User[] | undefined, base: string): JsonObject {
    const row = this.groupRows.get(team.id);
    return {
      schemas: [groupSchema],
      id: team.id,
      ...(row?.externalId === undefined ? {} : { externalId: row.externalId }),
      displayName: team.name,
      ...(members === undefined
        ? {}
        : {
            members: members.map(({ id, name }) => ({
              value: id,
              $ref: `${base}/Users/${id}`,
              type: 'User',
              display: name,
            })),
          }),
    };
  }
}

/** Returns the emails of the row, as long as the one to sign in with is still among them. */
function emailsOf({ email }: User, row: UserRow | undefined): readonly Email[] {
  if (row?.emails.some(({ value }) => value.toLowerCase() === email) === true) return row.emails;
  if (row !== undefined && row.emails.length === 0 && row.userName.toLowerCase() === email) return [];
  return [{ value: email, type: 'work', primary: true }];
}

function withMeta(
  fields: JsonObject,
  resourceType: string,
  created: number,
  changed: number,
  location: string,
  versioned: JsonValue = fields,
): JsonObject {
  const version = `W/"${hash('sha256', JSON.stringify(versioned)).slice(0, 24)}"`;
  return {
    ...fields,
    meta: {
      resourceType,
      created: new Date(created).toISOString(),
      lastModified: new Date(changed).toISOString(),
      location,
      version,
    },
  };
}
