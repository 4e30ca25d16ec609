/** Entries of the audit log about changes by a directory. */
import type { JsonObject } from 'sluice';
import type { Actor } from '../access/actor.ts';
import type { Audit, Change } from '../audit.ts';

/** Notes a change. One that changes nothing is not noted. */
export type NoteChange = (
  action: Change['action'],
  target: string,
  change: { readonly before?: JsonObject; readonly after?: JsonObject },
) => Promise<void>;

/** The holder of the token of the option, as the audit log names it. */
export const directoryActor: Actor = {
  kind: 'token',
  id: 'scim',
  name: 'SCIM directory',
  role: 'admin',
  teams: [],
};

/** Returns the function that notes the changes of one request. */
export function noteFor(audit: Audit, actor: Actor, ip: string): NoteChange {
  return async (action, target, change) => {
    const { before, after } = change;
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(after)) return;
    await audit.note({ actor, ip }, { action, target, ...change });
  };
}
