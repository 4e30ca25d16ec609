/** The form of an API key: its fields, and the request that they stand for. */
import type { KeyChanges, KeyView, NewKey } from '../../../admin/schemas/index.ts';
import {
  changedFields,
  draftOfLimits,
  readLimits,
  split,
  type Limits,
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
  /** Separated by commas or line ends: tags may have spaces. */
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
    tags: key?.tags?.join(', ') ?? '',
    callTags: key?.callTags === true,
  };
}

/** Reads the fields of the form. */
export function readDraft(
  draft: KeyDraft,
): { readonly value: NewKey } | { readonly problems: Problems<KeyDraft> } {
  const { limits, problems } = readLimits(draft);
  return Object.keys(problems).length > 0 ? { problems } : { value: valueOf(draft, limits) };
}

function valueOf(draft: KeyDraft, limits: Limits): NewKey {
  const { team, member, callTags } = draft;
  const tags = split(draft.tags, /[,\n]/);
  const expiresAt = draft.expiresAt === '' ? undefined : new Date(draft.expiresAt).getTime();
  return {
    ...limits,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(team !== '' && { team }),
    ...(member !== '' && { member }),
    ...(tags.length > 0 && { tags }),
    ...(callTags && { callTags }),
  };
}

/** Returns what was changed in the form of a key; null takes a limit away. */
export function changesOf(before: KeyView, after: NewKey): KeyChanges {
  const draft = draftOf(before);
  const untouched = valueOf(draft, readLimits(draft).limits);
  return changedFields(untouched, after, ['expiresAt', 'team', 'member', 'tags', 'callTags']);
}
