/** Admin endpoints for people who sign in. */
import { GatewayError, type JsonObject } from 'sluice';
import { UserMistake, type InternalTools } from 'sluice/internal';
import type { User, UserChanges, UserRole } from '../core-types.ts';
import type { Audit, Author } from '../audit.ts';
import { orInvalid } from '../or-invalid.ts';
import type { AuditEntry, UserView } from '../schemas/index.ts';
import type { Handlers } from '../serve.ts';
import type { Actor } from './actor.ts';
import { hasScope } from './judge.ts';
import { scopes } from './needs.ts';
import { versionCheck, versionOf } from './version.ts';

type UserTools = Pick<InternalTools, 'users' | 'credentials' | 'settings' | 'apiKeys'>;

type UserQuery = Parameters<Handlers<'listUsers'>['listUsers']>[0]['query'];

/** Returns the routes about users. */
export function userHandlers(
  tools: UserTools,
  audit: Audit,
): Handlers<
  'listUsers' | 'findUser' | 'createUser' | 'updateUser' | 'deleteUser' | 'inviteUser' | 'resetSecondFactor'
> {
  const { users, credentials, settings } = tools;
  const access = new UserAccess(tools, audit);
  return {
    async listUsers({ actor, query }) {
      await users.refresh();
      return pageOf(
        users.list().filter((one) => sees(actor, one)),
        query,
      );
    },
    findUser: async (request) => viewOf(await access.userOf(request)),
    async createUser(request) {
      const { actor } = request;
      const body =
        actor.organisation === undefined
          ? request.body
          : { organisation: actor.organisation, ...request.body };
      access.checkGiven(actor, body);
      checkReach(actor, body);
      const created = await orInvalid(UserMistake, users.create(body));
      await access.note(request, 'user-create', created.id, { after: created });
      const invitation = await credentials.invite(created.id, settings.members.invitation);
      return { user: viewOf((await users.current(created.id)) ?? created), invitation };
    },
    async updateUser(request) {
      const before = await access.userOf(request);
      const { organisation = before.organisation, ...changes } = request.body;
      const wanted: UserChanges = { ...changes, organisation: organisation ?? undefined };
      // Teams that the user has already are given by nobody: one of them may be removed or moved since.
      const newTeams = (wanted.teams ?? []).filter(
        (one) => !before.teams.some(({ team, lead }) => team === one.team && lead === one.lead),
      );
      access.checkGiven(request.actor, { ...wanted, teams: newTeams });
      const check = versionCheck(request.ctx);
      const changed = await orInvalid(
        UserMistake,
        users.update(before.id, wanted, (current) => {
          if (changesAccess(current, wanted)) checkReach(request.actor, current, wanted);
          check(versioned(current));
        }),
      );
      await access.note(request, 'user-update', before.id, { before, after: changed });
      return viewOf(changed);
    },
    async deleteUser(request) {
      const before = await access.userOf(request);
      versionCheck(request.ctx)(versioned(before));
      await orInvalid(UserMistake, users.remove(before.id));
      await access.note(request, 'user-delete', before.id, { before });
      return { ok: true };
    },
    async inviteUser(request) {
      const { id, organisation, role } = await access.userOf(request);
      checkReach(request.actor, { role });
      const invitation = await orInvalid(UserMistake, credentials.invite(id, settings.members.invitation));
      await audit.note(request, {
        action: 'user-invite',
        target: id,
        after: organisation === undefined ? {} : { organisation },
      });
      return invitation;
    },
    async resetSecondFactor(request) {
      const before = await access.userOf(request);
      checkReach(request.actor, before);
      const changed = await orInvalid(UserMistake, credentials.removeSecondFactor(before.id));
      await access.note(request, 'user-reset-second-factor', before.id, { before, after: changed });
      return viewOf(changed);
    },
  };
}

/** Finds users that an actor may see, checks what may be given, and notes changes. */
class UserAccess {
  readonly #users: UserTools['users'];
  readonly #owners: UserTools['apiKeys']['owners'];
  readonly #audit: Audit;

  constructor({ users, apiKeys: { owners } }: UserTools, audit: Audit) {
    this.#users = users;
    this.#owners = owners;
    this.#audit = audit;
  }

  async userOf({ id, actor }: { readonly id: string; readonly actor: Actor }): Promise<User> {
    const found = await this.#users.current(id);
    if (found === undefined || !sees(actor, found))
      throw new GatewayError('not_found', `There is no user ${id.slice(0, 100)}.`);
    return found;
  }

  note(
    by: Author,
    action: AuditEntry['action'],
    target: string,
    change: { readonly before?: User; readonly after?: User } = {},
  ): Promise<void> {
    const { before, after } = change;
    return this.#audit.note(by, {
      action,
      target,
      ...(before === undefined ? {} : { before: auditFields(before) }),
      ...(after === undefined ? {} : { after: auditFields(after) }),
    });
  }

  /** Throws where an administrator of an organisation would give what is not the organisation's. */
  checkGiven(actor: Actor, { organisation, teams = [], member }: UserChanges): void {
    if (actor.organisation === undefined) return;
    const isForeign =
      organisation !== actor.organisation ||
      [...teams.map(({ team }) => team), ...(member === undefined ? [] : [member])].some(
        (id) => this.#owners.find(id)?.organisation !== actor.organisation,
      );
    if (isForeign)
      throw new GatewayError(
        'invalid_value',
        'You can create users only in your organisation and its teams.',
      );
  }
}

/** Returns a page of the users that match a query. */
function pageOf(
  seen: readonly User[],
  { organisation, team, role, search, limit, after }: UserQuery,
): { users: UserView[]; next: string | undefined } {
  const sought = search?.toLowerCase();
  const all = seen.filter(
    (one) =>
      (organisation === undefined || one.organisation === organisation) &&
      (role === undefined || one.role === role) &&
      (team === undefined || one.teams.some((membership) => membership.team === team)) &&
      (sought === undefined ||
        [one.email, one.name, one.id].some((text) => text.toLowerCase().includes(sought))),
  );
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0)
    throw new GatewayError(
      'invalid_value',
      'after is not a cursor of this list. Use "next" from the previous page.',
      { param: 'after' },
    );
  const page = all.slice(start, start + limit);
  return { users: page.map(viewOf), next: start + limit < all.length ? page.at(-1)?.id : undefined };
}

/** Returns true when the user is among those whom an administrator or auditor sees. */
function sees({ organisation }: Actor, user: User): boolean {
  return organisation === undefined || user.organisation === organisation;
}

/**
 * Throws 403 where a token that may not do everything would make, or get into the hands of whoever holds it, a user who sees or changes
 * everything.
 */
function checkReach(
  { scopes: own }: Actor,
  ...reached: readonly { readonly role?: UserRole | undefined }[]
): void {
  if (own === undefined || scopes.every((one) => hasScope(own, one))) return;
  if (reached.some(({ role = 'member' }) => role !== 'member'))
    throw new GatewayError(
      'forbidden',
      'Only a token with all scopes can make or invite admins and auditors, or change their access.',
      { param: 'role' },
    );
}

/** Returns true when the changes are about what the user may do, or about how it signs in. */
function changesAccess(current: User, wanted: UserChanges): boolean {
  const { email = current.email, role = current.role, organisation } = wanted;
  return email !== current.email || role !== current.role || organisation !== current.organisation;
}

/** Returns the fields that make a version: those that an administrator edits. Others change while somebody signs in. */
function versioned({ email, name, role, organisation, teams, enabled }: User): object {
  return { email, name, role, organisation, teams, enabled };
}

/** Returns a user as the API shows it. */
export function viewOf(user: User): UserView {
  const { stamp: _stamp, teams, identities, ...rest } = user;
  return {
    ...rest,
    version: versionOf(versioned(user)),
    teams: teams.map((one) => ({ ...one })),
    identities: identities.map((one) => ({ ...one })),
  };
}

/** Returns the fields of a user that the audit keeps. */
function auditFields({ stamp: _stamp, ...rest }: User): JsonObject {
  return rest as unknown as JsonObject;
}
