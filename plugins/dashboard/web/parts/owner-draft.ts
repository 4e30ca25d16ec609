/** The form of an owner: its fields, and the request that they stand for. */
import type { NewOwner, OwnerChanges, OwnerView } from '../../../admin/schemas/index.ts';
import { draftOfPricing, readPricing, type PriceRuleDraft } from './price-draft.ts';
import {
  changedFields,
  draftOfLimits,
  readLimits,
  type Limits,
  type LimitsDraft,
  type Problems,
} from './limits-draft.ts';

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
  const { rule, problems: wrongPrices } = readRule(draft);
  const all = { ...problems, ...wrongPrices };
  return Object.keys(all).length > 0 ? { problems: all } : { value: valueOf(draft, limits, rule) };
}

/** Reads the price rule, of owners that may have one. */
const readRule = ({ kind, pricing }: OwnerDraft): Partial<ReturnType<typeof readPricing>> =>
  hasPricing(kind) ? readPricing(pricing) : {};

function valueOf(
  { kind, organisation }: OwnerDraft,
  limits: Limits,
  pricing: OwnerView['pricing'],
): NewOwner {
  return {
    ...limits,
    kind,
    ...(organisation !== '' && kind !== 'organisation' && { organisation }),
    ...(pricing !== undefined && { pricing }),
  };
}

/** Returns what was changed in the form of an owner; null takes a limit away. */
export function changesOfOwner(before: OwnerView, after: NewOwner): OwnerChanges {
  const draft = draftOfOwner(before, before.kind);
  const untouched = valueOf(draft, readLimits(draft).limits, readRule(draft).rule);
  return changedFields(untouched, after, ['organisation', 'pricing']);
}
