/** Some of the keys, by their owners: those that an actor of the admin API may see. */
import type { Database } from '../database/index.ts';

/** Keys of one organisation; or, without one, those of a member together with those of teams. */
export interface KeyScope {
  /** Id of the organisation. */
  readonly organisation?: string;
  /** Id of the member or service account. */
  readonly member?: string;
  /** Ids of the teams. */
  readonly teams?: readonly string[];
}

/** The owners of a key, by their ids. */
export interface KeyOwners {
  readonly team?: string | undefined;
  readonly member?: string | undefined;
  readonly organisation?: string | undefined;
}

/** Returns true when a key with these owners is among those of the scope. Every key is where there is no scope. */
export function isInScope(scope: KeyScope | undefined, { team, member, organisation }: KeyOwners): boolean {
  if (scope === undefined) return true;
  if (scope.organisation !== undefined) return organisation === scope.organisation;
  return (
    (member !== undefined && member === scope.member) ||
    (team !== undefined && (scope.teams ?? []).includes(team))
  );
}

/** A condition on the entry `e` of a key, and what stands for its question marks. */
export interface ScopeCondition {
  readonly sql: string;
  readonly values: readonly string[];
}

/** SQL for a member of the record in an entry. The indexes on entries have the same words. */
function memberOf(kind: Database['kind'], entry: string, name: keyof KeyOwners): string {
  return kind === 'sqlite'
    ? `CASE WHEN json_valid(${entry}.value) THEN json_extract(${entry}.value, '$.value.${name}') END`
    : `api_key_members(${entry}.value) ->> '${name}'`;
}

/**
 * Returns the condition that selects the keys of a scope, as {@link isInScope} does. Their hashes are found by an index; only the entries of
 * these are read.
 */
export function scopeCondition(kind: Database['kind'], scope: KeyScope): ScopeCondition {
  const of = (name: keyof KeyOwners): string => memberOf(kind, 'e', name);
  const among = (owners: string): string =>
    `e.key IN (SELECT held.hash FROM api_keys_owners held WHERE held.owner IN (${owners}))`;
  const { organisation, member, teams = [] } = scope;
  if (organisation !== undefined) {
    const organisationOf = (name: keyof KeyOwners): string =>
      `(SELECT ${memberOf(kind, 'o', 'organisation')} FROM keyv o WHERE o.namespace = 'owners' AND o.key = ${of(name)})`;
    const owners = `SELECT o.key FROM keyv o WHERE o.namespace = 'owners' AND ${memberOf(kind, 'o', 'organisation')} = ?`;
    return {
      // The nearest owner that belongs to an organisation decides, the member before the team.
      sql: `${among(owners)} AND COALESCE(${organisationOf('member')}, ${organisationOf('team')}) = ?`,
      values: [organisation, organisation],
    };
  }
  const parts = [
    ...(member === undefined ? [] : [['member', member] as const]),
    ...teams.map((team) => ['team', team] as const),
  ];
  if (parts.length === 0) return { sql: '1 = 0', values: [] };
  const ids = parts.map(([, id]) => id);
  return {
    sql: `${among(ids.map(() => '?').join(', '))} AND (${parts.map(([name]) => `${of(name)} = ?`).join(' OR ')})`,
    values: [...ids, ...ids],
  };
}
