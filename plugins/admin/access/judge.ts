/** The one place that decides which actor may use which route. */
import { GatewayError } from 'sluice';
import type { Actor } from './actor.ts';
import type { Needs, Scope } from './needs.ts';

export type { Scope } from './needs.ts';

/** Throws 403 unless the actor may use a route with these needs. */
export function checkAccess(actor: Actor, needs: Needs): void {
  const reason = reasonAgainst(actor, needs);
  if (reason !== undefined) throw new GatewayError('forbidden', reason);
}

/** Returns true when the actor may use a route with these needs. */
export function mayUse(actor: Actor, needs: Needs): boolean {
  return reasonAgainst(actor, needs) === undefined;
}

function reasonAgainst(actor: Actor, { group, act, who }: Needs): string | undefined {
  if (who === 'open') return undefined;
  if (actor.scopes !== undefined && !allows(actor.scopes, { group, act }))
    return `This token needs the scope ${group}:${act}.`;
  if (who === 'self') return undefined;
  if (actor.role === 'auditor' && act === 'write') return 'Auditors can read everything, but not change it.';
  if (who === 'everyone') return undefined;
  if (actor.role === 'member') return 'Only administrators and auditors may do this.';
  if (who === 'gateway' && actor.organisation !== undefined)
    return 'Only administrators of the whole gateway may do this, not those of one organisation.';
  return undefined;
}

/** Returns true when the scopes allow the act. Everything is allowed to read what it is itself. */
function allows(scopes: readonly string[], { group, act }: Pick<Needs, 'group' | 'act'>): boolean {
  return group === 'self' ? act === 'read' : hasScope(scopes, `${group}:${act}`);
}

/** Returns true when the scopes cover this one. What may be written may be read. */
export function hasScope(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes(scope.replace(/:read$/, ':write'));
}
