/** Roles of users in words. */
import type { UserView } from '../../../admin/schemas/index.ts';

/** The roles, least first. */
export const roleNames = [
  ['member', 'Member'],
  ['auditor', 'Auditor'],
  ['admin', 'Admin'],
] as const satisfies readonly (readonly [UserView['role'], string])[];

/** Returns the role of a user in words. */
export function roleOf({ role, teams }: Pick<UserView, 'role' | 'teams'>): string {
  if (role === 'member' && teams.some(({ lead }) => lead)) return 'Team lead';
  return roleNames.find(([name]) => name === role)?.[1] ?? role;
}
