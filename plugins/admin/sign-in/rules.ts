/** Decides role, organisation and teams of a person by the rules about groups. */
import type { Owner } from 'sluice';
import type { TeamMembership, UserChanges } from '../core-types.ts';
import type { AccessRule } from './options.ts';

/** Access by rules. What no rule of the list is about is absent, and stays as administrators have set it. */
export type Access = Pick<UserChanges, 'role' | 'organisation' | 'teams'>;

/** Result of the rules. */
export interface Verdict {
  /** Undefined when there are rules and none of them fits. */
  readonly access: Access | undefined;
  /** Teams that rules name and that do not exist. */
  readonly missingTeams: readonly string[];
  /** Organisation of the matching rule, if it does not exist. Then `access` is undefined, so that a user never gets more access than the rule allows. */
  readonly missingOrganisation?: string;
}

/** Finds an owner by its id or its name. */
export type FindOwner = (kind: 'team' | 'organisation', idOrName: string) => Owner | undefined;

/** Returns a function that finds owners. Of several with one name the oldest counts. */
export function ownerFinder(owners: readonly Owner[]): FindOwner {
  const found = new Map<string, Owner>();
  // The list begins with the newest.
  for (const owner of owners) {
    found.set(`${owner.kind} ${owner.name}`, owner);
  }
  for (const owner of owners) found.set(`${owner.kind} ${owner.id}`, owner);
  return (kind, idOrName) => found.get(`${kind} ${idOrName}`);
}

/** Returns the access that these groups give. */
export function accessOf(
  rules: readonly AccessRule[],
  groups: ReadonlySet<string>,
  find: FindOwner,
): Verdict {
  if (rules.length === 0) return { access: {}, missingTeams: [] };
  const fitting = rules.filter(({ group }) => group === '*' || groups.has(group));
  if (fitting.length === 0) return { access: undefined, missingTeams: [] };
  const isDeciding = ({ role, organisation }: AccessRule): boolean =>
    role !== undefined || organisation !== undefined;
  const deciding = fitting.find(isDeciding);
  const organisation =
    deciding?.organisation === undefined ? undefined : find('organisation', deciding.organisation);
  if (deciding?.organisation !== undefined && organisation === undefined)
    return { access: undefined, missingTeams: [], missingOrganisation: deciding.organisation };
  const { teams, missing } = teamsOf(fitting, find);
  return {
    access: {
      ...(rules.some(isDeciding) ? { role: deciding?.role ?? 'member', organisation: organisation?.id } : {}),
      ...(rules.some(({ team }) => team !== undefined) ? { teams } : {}),
    },
    missingTeams: missing,
  };
}

/** Returns the teams of these rules. Whoever leads a team by one rule leads it. */
function teamsOf(
  rules: readonly AccessRule[],
  find: FindOwner,
): { teams: TeamMembership[]; missing: string[] } {
  const leads = new Map<string, boolean>();
  const missing: string[] = [];
  for (const { team, lead = false } of rules) {
    if (team === undefined) continue;
    const found = find('team', team);
    if (found === undefined) missing.push(team);
    else leads.set(found.id, lead || (leads.get(found.id) ?? false));
  }
  return { teams: [...leads].map(([team, lead]) => ({ team, lead })), missing };
}

/** Access of a person whom no rule fits any more: none of what the rules could have given. */
export function noAccess(rules: readonly AccessRule[]): Access {
  return {
    ...(rules.some(({ role, organisation }) => role !== undefined || organisation !== undefined)
      ? { role: 'member' as const }
      : {}),
    ...(rules.some(({ team }) => team !== undefined) ? { teams: [] } : {}),
  };
}
