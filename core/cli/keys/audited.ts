/** Writes an entry in the audit log for each change that `sluice key` makes in the database. */
import type { JsonObject } from '../../model/json.ts';
import type { ApiKeys } from '../../state/api-keys/index.ts';
import type { AuditLog } from '../../state/audit-log.ts';
import { commandLineName } from '../admin/access.ts';
import type { KeyAdministration, ListedKey } from './administration.ts';

/** Returns the same operations. Each change is recorded in the audit log with the command line of this machine as its actor. */
export function audited(
  local: KeyAdministration,
  { owners }: Pick<ApiKeys, 'owners'>,
  log: AuditLog,
): KeyAdministration {
  const note = async (
    action: string,
    { id, team, member }: ListedKey,
    change: { readonly before?: JsonObject; readonly after?: JsonObject } = {},
  ): Promise<void> => {
    const organisation = [member, team]
      .map((owner) => (owner === undefined ? undefined : owners.find(owner)?.organisation))
      .find((found) => found !== undefined);
    await log.add({
      actor: { kind: 'command-line', id: 'command-line', name: commandLineName() },
      ip: '127.0.0.1',
      action,
      target: id,
      ...(organisation === undefined ? {} : { organisation }),
      ...change,
    });
  };

  return {
    async create(wanted) {
      const made = await local.create(wanted);
      await note('key-create', made.key, { after: changeableFields(made.key) });
      return made;
    },
    list: () => local.list(),
    async rotate(which, graceMs) {
      const rotated = await local.rotate(which, graceMs);
      await note('key-rotate', rotated.key, {
        after: { ...(graceMs > 0 && { graceSeconds: Math.round(graceMs / 1_000) }) },
      });
      return rotated;
    },
    async endOldSecret(which) {
      const ended = await local.endOldSecret(which);
      if (ended !== undefined) await note('key-old-secret-end', ended);
      return ended;
    },
    async revoke(which) {
      const key = await local.revoke(which);
      await note('key-delete', key, { before: changeableFields(key) });
      return key;
    },
  };
}

/** Returns the fields of a key that can be changed. They contain no part of the secret. */
function changeableFields({
  id: _id,
  prefix: _prefix,
  suffix: _suffix,
  createdAt: _made,
  lastUsedAt: _used,
  ...rest
}: ListedKey): JsonObject {
  return rest as unknown as JsonObject;
}
