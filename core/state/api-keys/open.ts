import { hash } from 'node:crypto';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owners } from '../owners/index.ts';
import { openOwners } from '../owners/open.ts';
import type { ReportError, Stores } from '../stores.ts';
import { stateOf, type KeyLimits } from './cache.ts';
import { DeletedNames } from './deleted-names.ts';
import { KeyDirectory } from './directory.ts';
import { Filling } from './filling.ts';
import type { KeyScope } from './key-scope.ts';
import { KeysInUse, NAMESPACE } from './in-use.ts';
import type { ApiKeys, FoundApiKey } from './index.ts';
import { LastUses } from './last-uses.ts';
import { OldSecrets } from './old-secrets.ts';
import { fromStored } from './stored-form.ts';
import { recordSchema, SECRET, sentenceOf } from './records.ts';
import { keyWrites } from './writes.ts';

/** Half of the second in which a change takes effect, so that the reading and a busy machine fit in the other half. */
const REFRESH_EVERY = 500;
const REFRESHES_PER_SAVE = 120;
/** Keys that are listed in one question to the database. */
const LISTED = 500;

const defaultLimits: KeyLimits = { keys: 10_000, strangers: 10_000, strangerMs: 30_000 };

/**
 * The API keys kept in these stores. `report` is told about records that cannot be read (their keys do not work) and
 * about a database that fails while the keys in memory go on working.
 */
export function createApiKeys(
  stores: Stores,
  report: ReportError = () => {},
  given: Partial<KeyLimits> = {},
  owners: Owners = openOwners(stores, report),
): ApiKeys {
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

  let timer: NodeJS.Timeout | undefined;
  let refreshes = 0;
  let refreshing: Promise<void> | undefined;
  let isStopped = false;
  let failing = false;

  function decode(row: string, value: unknown): ApiKey | undefined {
    const result = recordSchema.safeParse(fromStored(value));
    if (result.success && result.data.hash === row) return result.data;
    const problem = result.error === undefined ? 'it is the record of another key' : sentenceOf(result.error);
    report(new Error(`The API key stored as ${row.slice(0, 12)}… does not work: ${problem}.`));
    return undefined;
  }

  function found(key: ApiKey, isUse: boolean): FoundApiKey {
    const state = stateOf(owners.effective(key));
    if (isUse && state.state === 'valid') lastUses.note(key);
    return state;
  }

  function foundByOld(record: ApiKey, row: string, isUse: boolean): FoundApiKey {
    const state = found(oldSecrets.shown(record, row), isUse);
    if (isUse && state.state === 'valid') oldSecrets.note(record);
    return state;
  }

  function find(secret: string, isUse = true): FoundApiKey | undefined {
    if (secret.length > SECRET.longest) return undefined;
    const row = hash('sha256', secret);
    const entry = inUse.use(row);
    if (entry !== undefined) return found(entry.key, isUse);
    const replacement = oldSecrets.replacementOf(row);
    const record = replacement === undefined ? undefined : inUse.use(replacement)?.key;
    return record === undefined ? undefined : foundByOld(record, row, isUse);
  }

  function isKnown(secret: string): boolean {
    if (secret.length > SECRET.longest || secret.length < SECRET.shortest) return true;
    const row = hash('sha256', secret);
    if (inUse.use(row) !== undefined) return true;
    const replacement = oldSecrets.replacementOf(row) ?? row;
    return inUse.use(replacement) !== undefined || inUse.isStranger(replacement);
  }

  async function lookUp(secret: string, isUse = true): Promise<FoundApiKey | undefined> {
    if (isKnown(secret)) return find(secret, isUse);
    const row = hash('sha256', secret);
    const key = oldSecrets.replacementOf(row) === undefined ? await inUse.read(row) : undefined;
    if (key !== undefined) return found(key, isUse);
    const replacement = oldSecrets.replacementOf(row);
    const record = replacement === undefined ? undefined : await inUse.read(replacement);
    return record === undefined ? undefined : foundByOld(record, row, isUse);
  }

  function current(key: ApiKey): FoundApiKey | undefined {
    const replacement = inUse.use(key.hash) === undefined ? oldSecrets.replacementOf(key.hash) : undefined;
    const row = replacement ?? key.hash;
    const record = inUse.use(row)?.key;
    if (record !== undefined)
      return replacement === undefined ? found(record, false) : foundByOld(record, key.hash, false);
    if (inUse.isStranger(row)) return undefined;
    // Failures are told by the refreshing.
    inUse.read(row).catch(() => {});
    return stateOf(owners.effective(key));
  }

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

  async function saveUses(): Promise<void> {
    await lastUses.save();
    await oldSecrets.save();
  }

  /** Reads what others have changed. A database that hangs is asked by one at a time. */
  function refresh(): void {
    refreshing ??= readChanges().finally(() => {
      refreshing = undefined;
    });
  }

  async function readChanges(): Promise<void> {
    try {
      for (const step of [() => inUse.refresh(), () => oldSecrets.refresh(), () => owners.refresh()]) {
        // oxlint-disable-next-line no-await-in-loop -- one question at a time, so that calls find a connection
        await step();
        if (isStopped) return;
      }
      refreshes += 1;
      if (refreshes % REFRESHES_PER_SAVE === 0) await saveUses();
      failing = false;
    } catch (error) {
      // Once per failure of the database, not once a second.
      if (!failing) {
        report(
          new Error('API keys could not be refreshed; those in memory go on working.', { cause: error }),
        );
      }
      failing = true;
    }
    // What is missing is tried again with the next refreshing.
    if (!failing) void filling.run().catch(() => {});
  }

  function startRefreshing(): void {
    timer ??= setInterval(refresh, REFRESH_EVERY).unref();
  }

  async function stop(): Promise<void> {
    clearInterval(timer);
    timer = undefined;
    isStopped = true;
    // A reading under way would otherwise meet closed stores; whether it succeeds no longer matters.
    await Promise.all([refreshing, inUse.close(), oldSecrets.close(), filling.close(), owners.stop()]);
    // A database that fails must not keep the process from ending.
    await saveUses().catch((cause: unknown) =>
      report(new Error('When API keys were last used could not be saved.', { cause })),
    );
  }

  return {
    owners,
    async load() {
      await Promise.all([inUse.load(), oldSecrets.refresh(), owners.load()]);
    },
    find,
    isKnown,
    lookUp,
    current,
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
      const asked = [...new Set(ids)];
      const names = await directory.names(asked);
      for (const [id, name] of await deletedNames.find(asked.filter((one) => !names.has(one))))
        names.set(id, name);
      return names;
    },
    async effectiveById(id) {
      const key = await directory.byId(id);
      return key === undefined ? undefined : owners.effective(key);
    },
    ...keyWrites({ owners, stores, decode, inUse, directory, lastUses, oldSecrets, deletedNames }),
    oldSecretsOf: (keys) => oldSecrets.of(keys),
    startRefreshing,
    stop,
    get held() {
      return inUse.size;
    },
  };
}
