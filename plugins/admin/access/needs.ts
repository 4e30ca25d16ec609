/** Permissions that routes of the admin API require. */

/**
 * Groups of routes. A scope of a token names a group and what it allows there, such as `keys:write`. `self` is what an actor may do with
 * its own sign-in.
 */
export const routeGroups = [
  'self',
  'keys',
  'owners',
  'users',
  'usage',
  'channels',
  'models',
  'processes',
  'config',
  'tokens',
  'alerts',
  'audit',
  'plugins',
] as const;

/** One of the {@link routeGroups}. */
export type RouteGroup = (typeof routeGroups)[number];

/** Scope of a token: read or write in a group of routes. */
export type Scope = `${Exclude<RouteGroup, 'self'>}:${'read' | 'write'}`;

/** All scopes that a token may have. */
export const scopes: readonly Scope[] = routeGroups
  .filter((group) => group !== 'self')
  .flatMap((group) => [`${group}:read`, `${group}:write`] as const);

/**
 * Minimum access of a route:
 * - `open`: everybody, before any sign-in.
 * - `self`: everybody who has signed in, auditors for writes too, because it is about their own sign-in.
 * - `everyone`: everybody who has signed in. The handler restricts what is read and written to `request.scope`.
 * - `administrators`: admins and auditors, those of one organisation too. The handler restricts to `request.scope`.
 * - `gateway`: admins and auditors of the whole gateway.
 *
 * Auditors may read alone, except for `self`.
 */
export type Audience = 'open' | 'self' | 'everyone' | 'administrators' | 'gateway';

/** Permissions that a route requires. */
export interface Needs {
  readonly group: RouteGroup;
  readonly act: 'read' | 'write';
  readonly who: Audience;
}

/** Returns the permissions that a route of another plugin requires. */
export function needsOfPlugin(method: string): Needs {
  return { group: 'plugins', act: method === 'GET' ? 'read' : 'write', who: 'gateway' };
}
