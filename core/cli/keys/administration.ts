/** Operations of `sluice key`, on the database of the config or by the admin API of a gateway. */
import { z } from 'zod';
import type { JsonValue } from '../../model/json.ts';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { ApiKeys, NewApiKey } from '../../state/api-keys/index.ts';
import { budgetField } from '../../state/api-keys/fields.ts';
import { shown } from '../../state/api-keys/records.ts';
import { UsageError } from '../command.ts';
import type { AdminRequester } from '../remote.ts';

/** A key as the commands show it: of the secret only the first and the last characters. */
export type ListedKey = Omit<ApiKey, 'hash' | 'owners'>;

/** A key with its secret, which is shown once. */
export interface KeyWithValue {
  readonly key: ListedKey;
  readonly value: string;
}

/** Operations of `sluice key`. Methods that take a key reject when no key, or more than one, matches. */
export interface KeyAdministration {
  create(wanted: NewApiKey): Promise<KeyWithValue>;
  list(): Promise<readonly ListedKey[]>;
  rotate(which: string, graceMs: number): Promise<KeyWithValue>;
  /** Returns the key; undefined when no old secret worked. */
  endOldSecret(which: string): Promise<ListedKey | undefined>;
  revoke(which: string): Promise<ListedKey>;
}

/** Returns the operations on the database of the config. */
export function localKeys(keys: ApiKeys): KeyAdministration {
  return {
    create: async (wanted) => withoutHash(await keys.create(wanted)),
    list: async () => (await keys.list()).map(listed),
    rotate: async (which, graceMs) => withoutHash(await keys.rotate(which, graceMs)),
    async endOldSecret(which) {
      const key = await keys.meant(which);
      return (await keys.endOldSecret(key.id)) ? listed(key) : undefined;
    },
    revoke: async (which) => listed(await keys.revoke(which)),
  };
}

function withoutHash({ record, value }: { readonly record: ApiKey; readonly value: string }): KeyWithValue {
  return { key: listed(record), value };
}

function listed({ hash: _hash, owners: _owners, ...key }: ApiKey): ListedKey {
  return key;
}

const remoteKey: z.ZodType<ListedKey> = z.object({
  id: z.string(),
  name: z.string(),
  note: z.string().exactOptional(),
  prefix: z.string(),
  suffix: z.string(),
  models: z.array(z.string()).exactOptional(),
  budgets: z.array(z.object(budgetField.shape)).exactOptional(),
  requestsPerMinute: z.number().exactOptional(),
  tokensPerMinute: z.number().exactOptional(),
  concurrency: z.number().exactOptional(),
  addresses: z.array(z.string()).exactOptional(),
  expiresAt: z.number().exactOptional(),
  team: z.string().exactOptional(),
  member: z.string().exactOptional(),
  tags: z.array(z.string()).exactOptional(),
  enabled: z.boolean(),
  createdAt: z.number(),
  lastUsedAt: z.number().exactOptional(),
});
const withValue = z.object({ key: remoteKey, value: z.string() });
const page = z.object({ keys: z.array(remoteKey), next: z.string().optional() });

/** Returns the operations on the admin API of a gateway. */
export function remoteKeys(request: AdminRequester): KeyAdministration {
  async function pages(search?: string): Promise<ListedKey[]> {
    const keys: ListedKey[] = [];
    let after: string | undefined;
    do {
      const query = new URLSearchParams({
        limit: '500',
        ...(search !== undefined && { search }),
        ...(after !== undefined && { after }),
      });
      // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
      const some = page.parse(await request('GET', `/keys?${query}`));
      for (const key of some.keys) keys.push(key);
      after = some.next;
    } while (after !== undefined);
    return keys;
  }

  /** Returns the key with this id, name or first characters. Rejects a whole secret, so that none is sent. */
  async function resolve(which: string): Promise<ListedKey> {
    if (which.length > 32 && which.startsWith('sk-'))
      throw new UsageError('Name the key by its id, its name or its first characters, not by its secret.');
    const [prefix = '', suffix] = which.replace('...', '…').split('…');
    const isMeant = (key: ListedKey): boolean =>
      key.id === which ||
      key.name === which ||
      (key.prefix === prefix && (suffix === undefined || key.suffix === suffix));
    const found = (await pages(suffix === undefined ? which : prefix)).filter(isMeant);
    const exact = found.find(({ id }) => id === which);
    const [first, ...others] = exact === undefined ? found : [exact];
    if (first === undefined) throw new Error(`There is no key "${shown(which)}".`);
    if (others.length === 0) return first;
    const ids = found.slice(0, 20).map(({ id, name }) => `${id} (${name})`);
    throw new Error(`"${shown(which)}" matches ${found.length} keys. Use the id of one: ${ids.join(', ')}.`);
  }

  return {
    create: async (wanted) =>
      withValue.parse(await request('POST', '/keys', JSON.parse(JSON.stringify(wanted)) as JsonValue)),
    list: async () => (await pages()).toReversed(),
    async rotate(which, graceMs) {
      const { id } = await resolve(which);
      const graceSeconds = Math.round(graceMs / 1_000);
      return withValue.parse(await request('POST', `/keys/${id}/rotate`, { graceSeconds }));
    },
    async endOldSecret(which) {
      const key = await resolve(which);
      const { id } = key;
      const { oldSecret } = z
        .object({ oldSecret: z.unknown().optional() })
        .parse(await request('GET', `/keys/${id}`));
      if (oldSecret === undefined) return undefined;
      await request('DELETE', `/keys/${id}/old-secret`);
      return key;
    },
    async revoke(which) {
      const key = await resolve(which);
      await request('DELETE', `/keys/${key.id}`);
      return key;
    },
  };
}
