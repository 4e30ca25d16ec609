/** The routes of users and groups. */
import type { JsonObject, JsonValue, Owner } from 'sluice';
import type { User } from '../core-types.ts';
import type { Directory } from './directory.ts';
import { ScimError } from './errors.ts';
import { checkVersion, type Add, type Answer, type ScimRequest, type Handler } from './exchange.ts';
import { ScimGroups } from './groups.ts';
import { isWanted, listQuery, listResponse, reduced, wantedIn, type Listed } from './list.ts';
import type { ScimLock } from './lock.ts';
import type { ScimOptions } from './options.ts';
import { ScimUsers } from './users.ts';

/** Parts that the routes need. */
export interface Resources {
  readonly directory: Directory;
  readonly options: ScimOptions;
  readonly lock: ScimLock;
}

/** Adds the routes of users and groups. */
export function addResources(add: Add, resources: Resources): void {
  const users = new ScimUsers(resources.directory, resources.options);
  addUsers(add, users, resources);
  addGroups(add, new ScimGroups(resources.directory, users, resources.options), resources);
}

function addUsers(add: Add, users: ScimUsers, resources: Resources): void {
  const { directory } = resources;
  const shownUser = (id: string, { base, query }: ScimRequest): JsonObject =>
    reduced(directory.userResource(users.find(id), base), wantedIn(query));

  add(
    'GET',
    '/Users',
    fresh(resources, ({ query, base }) => ({ status: 200, body: userList(directory, query, base) })),
  );
  add('POST', '/Users/.search', async (request) => {
    const query = searchOf(await request.body());
    await directory.refresh();
    return { status: 200, body: userList(directory, query, request.base) };
  });
  add(
    'GET',
    '/Users/:id',
    fresh(resources, (request) => ({ status: 200, body: shownUser(request.id, request) })),
  );
  add(
    'POST',
    '/Users',
    alone(resources, async (request, body) => {
      const { id } = await users.create(body, request.note);
      return { status: 201, body: shownUser(id, request) };
    }),
  );
  add(
    'DELETE',
    '/Users/:id',
    alone(resources, async (request) => {
      const user = users.find(request.id);
      checkVersion(request, directory.userResource(user, request.base));
      await users.remove(user, request.note);
      return { status: 204 };
    }),
  );
  for (const method of ['PUT', 'PATCH'] as const) {
    const change = method === 'PUT' ? ('replace' as const) : ('patch' as const);
    add(
      method,
      '/Users/:id',
      alone(resources, async (request, body) => {
        const user = users.find(request.id);
        checkVersion(request, directory.userResource(user, request.base));
        await users[change](user, body, request.note);
        return { status: 200, body: shownUser(request.id, request) };
      }),
    );
  }
}

function addGroups(add: Add, groups: ScimGroups, resources: Resources): void {
  const { directory } = resources;
  const shownGroup = (id: string, { base, query }: ScimRequest): JsonObject => {
    const wanted = wantedIn(query);
    const members = isWanted(wanted, 'members') ? (directory.membersByTeam().get(id) ?? []) : undefined;
    return reduced(directory.groupResource(groups.find(id), members, base), wanted);
  };

  add(
    'GET',
    '/Groups',
    fresh(resources, ({ query, base }) => ({ status: 200, body: groupList(directory, query, base) })),
  );
  add('POST', '/Groups/.search', async (request) => {
    const query = searchOf(await request.body());
    await directory.refresh();
    return { status: 200, body: groupList(directory, query, request.base) };
  });

  add(
    'GET',
    '/Groups/:id',
    fresh(resources, (request) => ({ status: 200, body: shownGroup(request.id, request) })),
  );
  add(
    'POST',
    '/Groups',
    alone(resources, async (request, body) => {
      const { id } = await groups.create(body, request.note);
      return { status: 201, body: shownGroup(id, request) };
    }),
  );
  add(
    'DELETE',
    '/Groups/:id',
    alone(resources, async (request) => {
      const team = groups.find(request.id);
      const members = directory.membersByTeam().get(team.id) ?? [];
      checkVersion(request, directory.groupResource(team, members, request.base));
      await groups.remove(team, request.note);
      return { status: 204 };
    }),
  );
  for (const method of ['PUT', 'PATCH'] as const) {
    const change = method === 'PUT' ? ('replace' as const) : ('patch' as const);
    add(
      method,
      '/Groups/:id',
      alone(resources, async (request, body) => {
        const team = groups.find(request.id);
        const members = directory.membersByTeam().get(team.id) ?? [];
        checkVersion(request, directory.groupResource(team, members, request.base));
        await groups[change](team, body, request.note);
        // The response to a PATCH omits the group, which may be large, unless the request names attributes.
        if (method === 'PATCH' && !request.query.has('attributes')) return { status: 204 };
        return { status: 200, body: shownGroup(request.id, request) };
      }),
    );
  }
}

/** Reads the directory before a request is answered. */
function fresh({ directory }: Resources, handler: Handler): Handler {
  return async (request) => {
    await directory.refresh();
    return handler(request);
  };
}

/** Runs changes sequentially, each on the current state. Reads the body first. */
function alone(
  { directory, lock }: Resources,
  handler: (request: ScimRequest, body: JsonValue) => Promise<Answer>,
): Handler {
  return async (request) => {
    const body = request.ctx.method === 'DELETE' ? null : await request.body();
    return lock.run(async () => {
      await directory.refresh();
      return handler(request, body);
    });
  };
}

/** Returns the users that match a query. Finds a name, an id or an external id without a scan of all users. */
function userList(directory: Directory, query: URLSearchParams, base: string): JsonObject {
  const list = listQuery(query);
  const { filter } = list;
  const { users } = directory;
  const sought = filter?.type === 'compare' && filter.op === 'eq' ? filter : undefined;
  const text = typeof sought?.value === 'string' ? sought.value : undefined;
  const one =
    text === undefined
      ? undefined
      : sought?.path === 'username'
        ? { user: directory.byUserName(text) }
        : sought?.path === 'id'
          ? { user: users.find(text) }
          : sought?.path === 'externalid'
            ? { user: users.byExternalId(text) }
            : undefined;
  const listed: Listed<User> = {
    all: one === undefined ? users.list() : one.user === undefined ? [] : [one.user],
    resource: (user) => directory.userResource(user, base),
    fields: (user) => directory.userFields(user, base),
  };
  return listResponse(listed, list, wantedIn(query));
}

function groupList(directory: Directory, query: URLSearchParams, base: string): JsonObject {
  const list = listQuery(query);
  const wanted = wantedIn(query);
  const hasMembers = isWanted(wanted, 'members') || /members/i.test(query.get('filter') ?? '');
  const members = hasMembers ? directory.membersByTeam() : undefined;
  const membersOf = ({ id }: Owner): readonly User[] | undefined =>
    members === undefined ? undefined : (members.get(id) ?? []);
  const listed: Listed<Owner> = {
    all: directory.groups(),
    resource: (team) => directory.groupResource(team, membersOf(team), base),
    fields: (team) => directory.groupFields(team, membersOf(team), base),
  };
  return listResponse(listed, list, wanted);
}

/** Returns the query that a search by POST means (RFC 7644, section 3.4.3). */
function searchOf(body: JsonValue): URLSearchParams {
  const query = new URLSearchParams();
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax');
  for (const [name, value] of Object.entries(body)) {
    const text = Array.isArray(value) ? value.join(',') : value;
    if (typeof text === 'string' || typeof text === 'number') query.set(name, String(text));
  }
  return query;
}
