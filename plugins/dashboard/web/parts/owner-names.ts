/** Names of the kinds of owners, in the order in which they are listed. */
import type { OwnerView } from '../../../admin/schemas/index.ts';

/** Names of a kind. */
interface KindNames {
  readonly one: string;
  readonly many: string;
}

/** Names of each kind of owners. */
export const kindNames: Readonly<Record<OwnerView['kind'], KindNames>> = {
  organisation: { one: 'Organisation', many: 'Organisations' },
  team: { one: 'Team', many: 'Teams' },
  member: { one: 'Member', many: 'Members' },
  'service-account': { one: 'Service account', many: 'Service accounts' },
};

/** All kinds of owners. */
export const ownerKinds = Object.keys(kindNames) as readonly OwnerView['kind'][];
