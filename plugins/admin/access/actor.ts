/** Actors of the admin API: the admin password, users and tokens, with their roles and restrictions. */
import type { TeamMembership, User, UserRole } from '../core-types.ts';

/** The sender of a request, and what it may see and change. */
export interface Actor {
  /** The admin password, a user that has signed in, or a token of the admin API. */
  readonly kind: 'password' | 'user' | 'token';
  /** Id of the user or token in the audit log; `password` for the admin password. */
  readonly id: string;
  /** Name shown to people: an email, the name of a token, `admin password`. */
  readonly name: string;
  readonly role: UserRole;
  /** Id of the organisation to which the actor is restricted. Absent: sees all of the gateway. */
  readonly organisation?: string;
  readonly teams: readonly TeamMembership[];
  /** Id of the member whose keys and usage are the actor's own. Absent for a password and most tokens. */
  readonly member?: string;
  /** Scopes of a token; absent for people. Each is `read` or `write` of a group of routes, such as `keys:write`. */
  readonly scopes?: readonly string[];
}

/** Actor for requests with the admin password: an admin of the whole gateway. */
export const passwordActor: Actor = {
  kind: 'password',
  id: 'password',
  name: 'admin password',
  role: 'admin',
  teams: [],
};

/** Returns the actor that a user is. */
export function userActor({ id, email, role, organisation, teams, member }: User): Actor {
  return {
    kind: 'user',
    id,
    name: email,
    role,
    teams,
    member,
    ...(organisation === undefined ? {} : { organisation }),
  };
}
