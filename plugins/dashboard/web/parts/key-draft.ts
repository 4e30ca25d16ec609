/** The form of an API key: its fields, and the request that they stand for. */
import type { KeyChanges, KeyView, NewKey } from '../../../admin/schemas/index.ts';
import {
  changedFields,
  draftOfLimits,
  list,
  readLimits,
  type LimitsDraft,
  type Problems,
} from './limits-draft.ts';
import { localTime } from './text.ts';

/** A key while it is typed. */
export interface KeyDraft extends LimitsDraft {
  /** As a field for date and time has it, in local time. */
  readonly expiresAt: string;
  /** Id of the team; empty for none. */
  readonly team: string;
  /** Id of the member or service account; empty for none. */
  readonly member: string;
  /** Separated by spaces, commas or line ends. */
  readonly tags: string;
  /** True where calls may bring further tags. */
  readonly callTags: boolean;
}

/** Returns the fields of a form with a key, or with none. */
export function draftOf(key: KeyView | undefined): KeyDraft {
  return {
    ...draftOfLimits(key),
    expiresAt: key?.expiresAt === undefined ? '' : localTime(key.expiresAt),
    team: key?.team ?? '',
    member: key?.member ?? '',
    tags: key?.tags?.join(' ') ?? '',
    callTags: key?.callTags === true,
  };
}

/** Reads the fields of the form. */
export function readDraft(
  draft: KeyDraft,
): { readonly value: NewKey } | { readonly problems: Problems<KeyDraft> } {
  const { limits, problems } = readLimits(draft);
  if (Object.keys(problems).length > 0) return { problems };
  const { team, member, callTags } = draft;
  const tags = list(draft.tags);
  const expiresAt = draft.expiresAt === '' ? undefined : new Date(draft.expiresAt).getTime();
  return {
    value: {
      ...limits,
      ...(expiresAt !== undefined && { expiresAt }),
      ...(team !== '' && { team }),
      ...(member !== '' && { member }),
      ...(tags.length > 0 && { tags }),
      ...(callTags && { callTags }),
    },
  };
}

/** Returns what differs from a key as it is; null takes a limit away. */
export function changesOf(before: KeyView, after: NewKey): KeyChanges {
  // False is as good as none.
  const known = { ...before, callTags: before.callTags === true ? true : undefined };
  return changedFields(known, after, ['expiresAt', 'team', 'member', 'tags', 'callTags']);
}
