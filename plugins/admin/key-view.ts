/** View of an API key for the admin API, and its fields for versions and the audit log. */
import type { ApiKey, JsonObject } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { OldSecret } from './core-types.ts';
import { versionOf } from './access/version.ts';
import { budgetStates } from './budget-states.ts';
import type { KeyView } from './schemas/index.ts';

/** Returns the view of a key. `known`: its old secret where the caller has read it, null for none. */
export async function viewOfKey(
  key: ApiKey,
  { ledger, apiKeys }: Pick<InternalTools, 'apiKeys' | 'ledger'>,
  known?: OldSecret | null,
): Promise<KeyView> {
  const oldSecret = known === undefined ? (await apiKeys.oldSecretsOf([key]))[0] : (known ?? undefined);
  const { id, name, note, prefix, suffix, models, budgets = [], addresses, expiresAt, enabled } = key;
  const expired = expiresAt !== undefined && expiresAt <= Date.now();
  return {
    id,
    version: versionOf(editedFields(key)),
    name,
    note,
    prefix,
    suffix,
    state: !enabled ? 'disabled' : expired ? 'expired' : 'valid',
    models: models === undefined ? undefined : [...models],
    budgets: await budgetStates(id, budgets, ledger),
    endUserBudget: key.endUserBudget,
    tags: key.tags === undefined ? undefined : [...key.tags],
    callTags: key.callTags,
    requestsPerMinute: key.requestsPerMinute,
    tokensPerMinute: key.tokensPerMinute,
    concurrency: key.concurrency,
    addresses: addresses === undefined ? undefined : [...addresses],
    expiresAt,
    team: key.team,
    member: key.member,
    teamName: key.team === undefined ? undefined : apiKeys.owners.find(key.team)?.name,
    memberName: key.member === undefined ? undefined : apiKeys.owners.find(key.member)?.name,
    enabled,
    createdAt: key.createdAt,
    lastUsedAt: key.lastUsedAt,
    oldSecret,
  };
}

/** Returns the fields that people edit, without those of the secret: the audit log keeps them, and they make the version. A rotation or a use is no edit. */
export function editedFields(key: ApiKey): JsonObject {
  const {
    id: _id,
    hash: _hash,
    prefix: _prefix,
    suffix: _suffix,
    createdAt: _made,
    lastUsedAt: _used,
    ...rest
  } = key;
  return rest as unknown as JsonObject;
}
