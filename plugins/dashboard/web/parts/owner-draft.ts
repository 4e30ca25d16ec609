/** The form of an owner: its fields, and the request that they stand for. */
import type { NewOwner, OwnerChanges, OwnerView } from '../../../admin/schemas/index.ts';
import { draftOfPricing, readPricing, type PriceRuleDraft } from './price-draft.ts';
import { changedFields, draftOfLimits, readLimits, type LimitsDraft, type Problems } from './limits-draft.ts';

/** An owner while it is typed. */
export interface OwnerDraft extends LimitsDraft {
  readonly kind: OwnerView['kind'];
  /** Id of the organisation; empty for none. */
  readonly organisation: string;
  /** Of teams and organisations alone. */
  readonly pricing: PriceRuleDraft;
}

/** Returns true for a kind of owners that may have a price rule. */
export const hasPricing = (kind: OwnerView['kind']): boolean => kind === 'team' || kind === 'organisation';

/** Returns the fields of a form with an owner, or with a new one of some kind. */
export function draftOfOwner(owner: OwnerView | undefined, kind: OwnerView['kind']): OwnerDraft {
  return {
    ...draftOfLimits(owner),
    kind: owner?.kind ?? kind,
    organisation: owner?.organisation ?? '',
    pricing: draftOfPricing(owner?.pricing),
  };
}

/** Reads the fields of the form. */
export function readOwner(
  draft: OwnerDraft,
): { readonly value: NewOwner } | { readonly problems: Problems<OwnerDraft> } {
  const { limits, problems } = readLimits(draft);
  const { kind, organisation } = draft;
  const pricing = hasPricing(kind) ? readPricing(draft.pricing) : undefined;
  const all = { ...problems, ...pricing?.problems };
  if (Object.keys(all).length > 0) return { problems: all };
  const rule = pricing?.rule;
  return {
    value: {
      ...limits,
      kind,
      ...(organisation !== '' && kind !== 'organisation' && { organisation }),
      ...(rule !== undefined && { pricing: rule }),
    },
  };
}

/** Returns what differs from an owner as it is; null takes a limit away. */
export function changesOfOwner(before: OwnerView, after: NewOwner): OwnerChanges {
  return changedFields(before, after, ['organisation', 'pricing']);
}
