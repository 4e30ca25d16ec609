import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owners } from '../owners/index.ts';
import { openOwners } from '../owners/open.ts';
import type { ReportError, Stores } from '../stores.ts';
import type { KeyLimits } from './cache.ts';
import { DeletedNames } from './deleted-names.ts';
import { KeyDirectory } from './directory.ts';
import { KeyFinding } from './finding.ts';
import { Filling } from './filling.ts';
import type { KeyScope } from './key-scope.ts';
import { KeysInUse, NAMESPACE, type DecodeKey } from './in-use.ts';
import type { ApiKeys } from './index.ts';
import { LastUses } from './last-uses.ts';
import { OldSecrets } from './old-secrets.ts';
import { Refreshing } from './refreshing.ts';
import { fromStored } from './stored-form.ts';
import { recordSchema, sentenceOf } from './records.ts';
import { keyWrites } from './writes.ts';

/** Keys that are listed in one question to the database. */
const LISTED = 500;

const defaultLimits: KeyLimits = { keys: 10_000, strangers: 10_000, strangerMs: 30_000 };

/**
 * The API keys kept in these stores. `report` is called for records that cannot be read (their keys do not work) and
 * about a database that fails while the keys in memory go on working.
 */
export function createApiKeys(
  stores: Stores,
  report: ReportError = () => {},
  given: Partial<KeyLimits> = {},
  owners: Owners = openOwners(stores, report),
): ApiKeys {
  const decode: DecodeKey = (row, value) => decodeKey(row, value, report);
  const deletedNames = new DeletedNames(stores.namespace<string>(`${NAMESPACE}-deleted`));
  const lastUses = new LastUses(stores.namespace<number>(`${NAMESPACE}-used`));
  const filling = new Filling(stores.database);
  const records = stores.namespace<unknown>(NAMESPACE);
  const oldSecrets = new OldSecrets(stores, report);
  const inUse = new KeysInUse(
    stores,
    decode,
    { ...defaultLimits, ...given },
    (key) => lastUses.forget(key),
    async (keys) => {
      // A secret that is gone may be one that still works beside its replacement.
      if (keys === undefined || keys.includes(undefined)) await oldSecrets.refresh();
      // Another process may have made a key and its owners a moment ago. Without its owners the key is switched off.
      if (keys?.every((key) => key === undefined || owners.hasAllOf(key)) !== true) await owners.refresh();
    },
  );
  const directory = new KeyDirectory(stores.database, filling, async (row, text) => {
    const read = await records.deserializeData<unknown>(text);
    return decode(row, read?.value);
  });

  const finding = new KeyFinding(owners, inUse, lastUses, oldSecrets);
  const refreshing = new Refreshing({ owners, inUse, oldSecrets, filling, lastUses }, report);

  return {
    owners,
    async load() {
      await Promise.all([inUse.load(), oldSecrets.refresh(), owners.load()]);
    },
    find: (secret, isUse) => finding.find(secret, isUse),
    isKnown: (secret) => finding.isKnown(secret),
    lookUp: (secret, isUse) => finding.lookUp(secret, isUse),
    current: (key) => finding.current(key),
    ...listing(directory, lastUses, deletedNames),
    async effectiveById(id) {
      const key = await directory.byId(id);
      return key === undefined ? undefined : owners.effective(key);
    },
    ...keyWrites({ owners, stores, decode, inUse, directory, lastUses, oldSecrets, deletedNames }),
    oldSecretsOf: (keys) => oldSecrets.of(keys),
    startRefreshing: () => refreshing.start(),
    stop: () => refreshing.stop(),
    get held() {
      return inUse.size;
    },
  };
}

/** Lists keys, whether or not this process holds them. */
function listing(
  directory: KeyDirectory,
  lastUses: LastUses,
  deletedNames: DeletedNames,
): Pick<ApiKeys, 'isEmpty' | 'list' | 'page' | 'count' | 'byId' | 'byIds' | 'names'> {
  async function list(): Promise<ApiKey[]> {
    const keys: ApiKey[] = [];
    let after: string | undefined;
    do {
      // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
      const some = await page(LISTED, after);
      for (const key of some.keys) keys.push(key);
      after = some.next;
    } while (after !== undefined);
    return keys.toReversed();
  }

  async function page(
    limit: number,
    after?: string,
    search?: string,
    owner?: string,
    scope?: KeyScope,
  ): ReturnType<ApiKeys['page']> {
    const listed = await directory.page(limit, after, search, owner, scope);
    return { ...listed, keys: await lastUses.addTo(listed.keys) };
  }

  return {
    isEmpty: () => directory.isEmpty(),
    list,
    page,
    count: (scope) => directory.count(scope),
    async byId(id) {
      const key = await directory.byId(id);
      return key && (await lastUses.addTo([key]))[0];
    },
    async byIds(ids) {
      const some = await lastUses.addTo(await directory.byIds(ids));
      const known = new Map(some.map((key) => [key.id, key]));
      return ids.flatMap((id) => known.get(id) ?? []);
    },
    async names(ids) {
      const uniqueIds = [...new Set(ids)];
      const names = await directory.names(uniqueIds);
      for (const [id, name] of await deletedNames.find(uniqueIds.filter((one) => !names.has(one))))
        names.set(id, name);
      return names;
    },
  };
}

function decodeKey(row: string, value: unknown, report: ReportError): ApiKey | undefined {
  const result = recordSchema.safeParse(fromStored(value));
  if (result.success && result.data.hash === row) return result.data;
  const problem = result.error === undefined ? 'it is the record of another key' : sentenceOf(result.error);
  report(new Error(`The API key stored as ${row.slice(0, 12)}… does not work: ${problem}.`));
  return undefined;
}
