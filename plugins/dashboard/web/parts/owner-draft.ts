/** The form of an owner: its fields, and the request that they stand for. */
import type { NewOwner, OwnerChanges, OwnerView } from '../../../admin/schemas/index.ts';
import { changedFields, draftOfLimits, readLimits, type LimitsDraft, type Problems } from './limits-draft.ts';

/** An owner while it is typed. */
export interface OwnerDraft extends LimitsDraft {
  readonly kind: OwnerView['kind'];
  /** Id of the organisation; empty for none. */
  readonly organisation: string;
}

/** Returns the fields of a form with an owner, or with a new one of some kind. */
export function draftOfOwner(owner: OwnerView | undefined, kind: OwnerView['kind']): OwnerDraft {
  return {
    ...draftOfLimits(owner),
    kind: owner?.kind ?? kind,
    organisation: owner?.organisation ?? '',
  };
}

/** Reads the fields of the form. */
export function readOwner(
  draft: OwnerDraft,
): { readonly value: NewOwner } | { readonly problems: Problems<OwnerDraft> } {
  const { limits, problems } = readLimits(draft);
  if (Object.keys(problems).length > 0) return { problems };
  const { kind, organisation } = draft;
  return {
    value: { ...limits, kind, ...(organisation !== '' && kind !== 'organisation' && { organisation }) },
  };
}

/** Returns what differs from an owner as it is; null takes a limit away. */
export function changesOfOwner(before: OwnerView, after: NewOwner): OwnerChanges {
  return changedFields(before, after, ['organisation']);
}
