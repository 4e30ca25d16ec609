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

/** Returns the condition that selects the keys of a scope, as {@link isInScope} does. */
export function scopeCondition(kind: Database['kind'], scope: KeyScope): ScopeCondition {
  const isSqlite = kind === 'sqlite';
  const of = (entry: string, name: string): string =>
    isSqlite
      ? `CASE WHEN json_valid(${entry}.value) THEN json_extract(${entry}.value, '$.value.${name}') END`
      : `api_key_members(${entry}.value) ->> '${name}'`;
  const { organisation, member, teams = [] } = scope;
  if (organisation === undefined) {
    const parts = [
      ...(member === undefined ? [] : [['member', member] as const]),
      ...teams.map((team) => ['team', team] as const),
    ];
    if (parts.length === 0) return { sql: '1 = 0', values: [] };
    // An entry that does not hold the id at all is not read as JSON.
    const holds = isSqlite ? 'instr(e.value, ?) > 0' : 'strpos(e.value, ?) > 0';
    return {
      sql: `(${parts.map(([name]) => `(${holds} AND ${of('e', name)} = ?)`).join(' OR ')})`,
      values: parts.flatMap(([, id]) => [id, id]),
    };
  }
  const owners = (condition: string): string =>
    `(SELECT o.key FROM keyv o WHERE o.namespace = 'owners' AND ${of('o', 'organisation')} ${condition})`;
  // The nearest owner that belongs to an organisation decides, the member before the team.
  return {
    sql: `CASE WHEN ${of('e', 'member')} IN ${owners('IS NOT NULL')} THEN ${of('e', 'member')} IN ${owners('= ?')}
      ELSE ${of('e', 'team')} IN ${owners('= ?')} END`,
    values: [organisation, organisation],
  };
}
