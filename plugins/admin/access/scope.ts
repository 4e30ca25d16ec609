/** Restricts what an actor sees and changes. */
import { GatewayError, type ApiKey, type Owner } from 'sluice';
import { isInScope, type InternalTools } from 'sluice/internal';
import type { KeyOwners, KeyScope } from '../core-types.ts';
import type { Actor } from './actor.ts';

type Owners = InternalTools['apiKeys']['owners'];
type OwnedKey = Pick<ApiKey, 'team' | 'member'>;

/** The part of the gateway that is an actor's. What stands outside of it does not exist for the actor. */
export interface Scope {
  /** The keys of the actor, and their usage; undefined for all of them. */
  readonly keys: KeyScope | undefined;
  seesKey(key: OwnedKey): boolean;
  /** Throws 404 for usage of others. */
  checkUsage(owners: KeyOwners): void;
  /** Throws unless the actor may give a key these owners. */
  checkKeyOwners(key: OwnedKey): void;
  seesOwner(owner: Owner): boolean;
  /** Returns true when the actor may change the owner, or make it. */
  managesOwner(owner: Pick<Owner, 'kind' | 'organisation'> & { readonly id?: string }): boolean;
  /** True when the actor may set price rules. One of a team also decides what its calls take of the organisation's budget. */
  readonly setsPrices: boolean;
}

/** Returns the scope of an actor. */
export function scopeOf(actor: Actor, owners: Owners): Scope {
  const { role, organisation, member, teams } = actor;
  const isOfAll = role !== 'member' && organisation === undefined;
  const led = teams.filter(({ lead }) => lead).map(({ team }) => team);
  const keys: KeyScope | undefined = isOfAll
    ? undefined
    : role !== 'member' && organisation !== undefined
      ? { organisation }
      : { teams: led, ...(member === undefined ? {} : { member }) };

  const isOfOrganisation = (owner: { readonly id?: string; readonly organisation?: string }): boolean =>
    owner.id === organisation || owner.organisation === organisation;

  return {
    keys,
    seesKey: (key) => isInScope(keys, { ...key, organisation: organisationOf(key, owners) }),
    checkUsage(record) {
      if (!isInScope(keys, record)) throw new GatewayError('not_found', 'There is no record of such a call.');
    },
    checkKeyOwners(key) {
      if (keys === undefined) return;
      const isMine = isInScope(keys, { ...key, organisation: organisationOf(key, owners) });
      const isForeign =
        keys.organisation === undefined &&
        ((key.member !== undefined && key.member !== member) ||
          (key.team !== undefined && !teams.some(({ team }) => team === key.team)));
      if (!isMine || isForeign || reachesOut(key))
        throw new GatewayError('invalid_value', 'You can assign a key only to yourself and to your teams.');
    },
    seesOwner(owner) {
      if (isOfAll) return true;
      if (role !== 'member') return isOfOrganisation(owner);
      return (
        owner.id === member ||
        owner.id === organisationOf(member === undefined ? {} : { member }, owners) ||
        teams.some(({ team }) => team === owner.id)
      );
    },
    managesOwner(owner) {
      if (role !== 'admin') return false;
      if (isOfAll) return true;
      // An organisation's own limits are set by those above it.
      return owner.kind !== 'organisation' && owner.organisation === organisation;
    },
    setsPrices: isOfAll && role === 'admin',
  };

  /** Returns true when one of the owners belongs to another organisation than that of the scope. */
  function reachesOut({ team, member: of }: OwnedKey): boolean {
    if (keys?.organisation === undefined) return false;
    return [team, of].some((id) => id !== undefined && owners.find(id)?.organisation !== keys.organisation);
  }
}

/** Returns the organisation that binds a key: that of its member, or else of its team. */
export function organisationOf({ member, team }: OwnedKey, owners: Owners): string | undefined {
  const of = (id: string | undefined) => (id === undefined ? undefined : owners.find(id)?.organisation);
  return of(member) ?? of(team);
}
