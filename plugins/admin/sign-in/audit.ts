/** Entries of the audit log about users that a sign-in makes or changes. */
import type { JsonObject } from 'sluice';
import type { User } from '../core-types.ts';
import type { Audit, Author } from '../audit.ts';
import type { SignedIn } from './people.ts';

/** Notes that a sign-in has made a user or changed its access. */
export async function noteAccess(audit: Audit, author: Author, { user, before }: SignedIn): Promise<void> {
  if (before === user) return;
  await audit.note(author, {
    action: before === undefined ? 'user-create' : 'user-update',
    target: user.id,
    ...(before === undefined ? {} : { before: shown(before) }),
    after: shown(user),
  });
}

/** Returns a user as the audit log shows it: without the stamp of its sessions. */
export function shown({ stamp: _stamp, ...rest }: User): JsonObject {
  return rest as unknown as JsonObject;
}
