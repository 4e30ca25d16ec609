import { hash, timingSafeEqual } from 'node:crypto';
import { entriesOf, type ReportError, type Stores } from '../stores.ts';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { ApiKeys, FoundApiKey, NewApiKey } from './index.ts';
import { DeletedNames } from './deleted-names.ts';
import { LastUses } from './last-uses.ts';
import { KeysInMemory, stateOf } from './memory.ts';
import {
  type ApiKeyChanges,
  checkRecord,
  checkSecret,
  present,
  randomBase62,
  recognition,
  recordSchema,
  SECRET,
  sentenceOf,
  shown,
} from './records.ts';

const NAMESPACE = 'api-keys';
/** Half of the second in which a change takes effect, so that the reading and a busy machine fit in the other half. */
const REFRESH_EVERY = 500;
const REFRESHES_PER_SAVE = 120;

/**
 * The API keys kept in these stores. `report` is told about records that cannot be read (their keys do not work) and
 * about a database that fails while the keys in memory go on working.
 */
export function createApiKeys(stores: Stores, report: ReportError = () => {}): ApiKeys {
  // A row's name is the secret's hash, so that no two keys can have the same secret, whoever makes them.
  const records = stores.namespace<unknown>(NAMESPACE);
  const deletedNames = new DeletedNames(stores.namespace<string>(`${NAMESPACE}-deleted`));
  const lastUses = new LastUses(stores.namespace<number>(`${NAMESPACE}-used`));

  let known = new KeysInMemory();
  let loadedRevision: number | undefined;
  let loading: Promise<void> | undefined;
  /** The reading behind that one, for all who have asked meanwhile. */
  let following: Promise<void> | undefined;
  /** What this process wrote while it was reading, and may have read as it was before. */
  let writtenMeanwhile: Map<string, ApiKey | undefined> | undefined;

  let timer: NodeJS.Timeout | undefined;
  let refreshes = 0;
  let refreshing = false;
  let failing = false;

  /** A reading that begins now or later: what is being read already may be older than what the caller knows. */
  function load(): Promise<void> {
    if (loading !== undefined)
      return (following ??= loading
        .catch(() => {})
        .then(() => {
          following = undefined;
          return load();
        }));
    loading = read().finally(() => {
      loading = undefined;
      writtenMeanwhile = undefined;
    });
    return loading;
  }

  async function read(): Promise<void> {
    const written = (writtenMeanwhile = new Map<string, ApiKey | undefined>());
    const changed =
      loadedRevision === undefined ? undefined : await stores.changes<unknown>(NAMESPACE, loadedRevision);
    if (changed === undefined) return readAll(written);
    for (const [row, value] of changed.entries)
      if (!written.has(row)) known.put(row, value === undefined ? undefined : decode(row, value));
    if (written.size === 0) loadedRevision = changed.revision;
  }

  async function readAll(written: ReadonlyMap<string, ApiKey | undefined>): Promise<void> {
    const fresh = new KeysInMemory();
    const revision = await stores.revision(NAMESPACE);
    for await (const [row, value] of entriesOf(records)) fresh.put(row, decode(row, value));
    for (const [row, key] of written) fresh.put(row, key);
    known = fresh;
    loadedRevision = written.size === 0 ? revision : undefined;
  }

  function decode(row: string, value: unknown): ApiKey | undefined {
    const result = recordSchema.safeParse(value);
    if (result.success && result.data.hash === row) return result.data;
    const problem = result.error === undefined ? 'it is the record of another key' : sentenceOf(result.error);
    report(new Error(`The API key stored as ${row.slice(0, 12)}… does not work: ${problem}.`));
    return undefined;
  }

  /**
   * In force here at once. `since` is the revision that was known when the writing began: what others wrote to this key from then on, also
   * what has been read already, is found by the reading that follows.
   */
  function remember(row: string, key: ApiKey | undefined, since: number | undefined): void {
    known.put(row, key);
    loadedRevision =
      loadedRevision === undefined || since === undefined ? undefined : Math.min(loadedRevision, since);
    writtenMeanwhile?.set(row, key);
  }

  function find(secret: string, isUse = true): FoundApiKey | undefined {
    if (secret.length > SECRET.longest) return undefined;
    const row = hash('sha256', secret);
    const entry = known.inRow(row);
    if (entry === undefined || !timingSafeEqual(entry.digest, Buffer.from(row, 'hex'))) return undefined;
    const found = stateOf(entry.key);
    if (isUse && found.state === 'valid') lastUses.note(row);
    return found;
  }

  function standing(key: ApiKey): FoundApiKey | undefined {
    const entry = known.inRow(key.hash);
    return entry === undefined ? undefined : stateOf(entry.key);
  }

  async function list(): Promise<ApiKey[]> {
    await load();
    return lastUses.addTo(known.all());
  }

  async function page(limit: number, after?: string, search?: string): ReturnType<ApiKeys['page']> {
    await load();
    const found = known.page(limit, after, search);
    return { ...found, keys: await lastUses.addTo(found.keys) };
  }

  async function byId(id: string): Promise<ApiKey | undefined> {
    await load();
    const key = known.withId(id);
    return key && (await lastUses.addTo([key]))[0];
  }

  async function create({ value: given, ...options }: NewApiKey): Promise<{ record: ApiKey; value: string }> {
    const value = given === undefined ? `sk-${randomBase62(48)}` : checkSecret(given);
    const createdAt = Date.now();
    const record = checkRecord({
      enabled: true,
      ...present(options),
      id: `key_${randomBase62(16)}`,
      hash: hash('sha256', value),
      ...recognition(value),
      createdAt,
    });
    if (record.expiresAt !== undefined && record.expiresAt <= createdAt) {
      throw new Error(
        'The API key cannot be saved: expiresAt: must lie in the future, in milliseconds since 1970.',
      );
    }
    const since = loadedRevision;
    if (!(await stores.add<unknown>(NAMESPACE, record.hash, record)))
      throw new Error('There is a key with this value already.');
    remember(record.hash, record, since);
    return { record, value };
  }

  async function update(which: string, changes: ApiKeyChanges): Promise<ApiKey> {
    return atRow(which, (row) =>
      change(row, (current) => {
        const { id, hash: digest, prefix, suffix, createdAt } = current;
        return present({ ...current, ...changes, id, hash: digest, prefix, suffix, createdAt });
      }),
    );
  }

  async function rotate(which: string): Promise<{ record: ApiKey; value: string }> {
    const value = `sk-${randomBase62(48)}`;
    const fresh = { hash: hash('sha256', value), ...recognition(value) };
    const record = await atRow(which, (row) => change(row, (current) => ({ ...current, ...fresh })));
    return { record, value };
  }

  async function revoke(which: string): Promise<ApiKey> {
    return atRow(which, async (row) => {
      const key = known.inRow(row)?.key;
      const since = loadedRevision;
      // The name is written first because a crash between the two writes would lose it.
      if (key !== undefined) await deletedNames.keep(key);
      const existed = await records.delete(row);
      remember(row, undefined, since);
      if (key === undefined || !existed) return undefined;
      await lastUses.remove(row, key.id);
      return key;
    });
  }

  /** Puts what `make` makes of a record in its place, as it is in the database by then. Undefined when there is none in this row. */
  async function change(row: string, make: (current: ApiKey) => object): Promise<ApiKey | undefined> {
    let made: ApiKey | undefined;
    const since = loadedRevision;
    const written = await stores.change<unknown>(NAMESPACE, row, (value) => {
      const current = decode(row, value);
      if (current === undefined) return undefined;
      made = checkRecord(make(current));
      return { value: made, key: made.hash };
    });
    if (written === undefined || made === undefined) return undefined;
    if (made.hash !== row) {
      remember(row, undefined, since);
      lastUses.forget(row);
    }
    remember(made.hash, made, since);
    return made;
  }

  /** Works on the row of a key; `work` gives undefined when the key is there no longer. It is followed to where somebody rotates it. */
  async function atRow<Result>(
    which: string,
    work: (row: string) => Promise<Result | undefined>,
  ): Promise<Result> {
    let row: string | undefined = await resolve(which);
    const id = known.inRow(row)?.key.id;
    while (row !== undefined) {
      // oxlint-disable no-await-in-loop -- another turn only when somebody has rotated the key meanwhile
      const done = await work(row);
      if (done !== undefined) return done;
      await load();
      // oxlint-enable no-await-in-loop
      const now: string | undefined = id === undefined ? undefined : known.withId(id)?.hash;
      row = now === row ? undefined : now;
    }
    throw new Error(`The key "${shown(which)}" was revoked in the meantime.`);
  }

  /** The row of the one key that somebody means. */
  async function resolve(which: string): Promise<string> {
    await load();
    const row = hash('sha256', which);
    if (known.inRow(row) !== undefined) return row;
    const named = known.withId(which);
    if (named !== undefined) return named.hash;
    const typed = which.replace('...', '…');
    const [first, ...others] = known
      .all()
      .filter(
        ({ name, prefix, suffix }) => name === which || prefix === typed || `${prefix}…${suffix}` === typed,
      );
    if (first === undefined) throw new Error(`There is no key "${shown(which)}".`);
    if (others.length === 0) return first.hash;
    const ids = [first, ...others].map(({ id, name }) => `${id} (${name})`).join(', ');
    throw new Error(`"${shown(which)}" means ${others.length + 1} keys. Name one by its id: ${ids}.`);
  }

  async function refresh(): Promise<void> {
    // A database that hangs is asked by one at a time.
    if (refreshing) return;
    refreshing = true;
    try {
      if ((await stores.revision(NAMESPACE)) !== loadedRevision) await load();
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
    } finally {
      refreshing = false;
    }
  }

  const saveUses = (): Promise<void> => lastUses.save((row) => known.inRow(row)?.key.id);

  function startRefreshing(): void {
    timer ??= setInterval(() => void refresh(), REFRESH_EVERY).unref();
  }

  async function stop(): Promise<void> {
    clearInterval(timer);
    timer = undefined;
    // A reading under way would otherwise meet closed stores; whether it succeeds no longer matters.
    await (following ?? loading)?.catch(() => {});
    // A database that fails must not keep the process from ending.
    await saveUses().catch((cause: unknown) =>
      report(new Error('When API keys were last used could not be saved.', { cause })),
    );
  }

  return {
    load,
    find,
    current: standing,
    list,
    page,
    byId,
    names: (ids) => load().then(() => deletedNames.find(ids, (id) => known.withId(id)?.name)),
    create,
    update,
    rotate,
    revoke,
    startRefreshing,
    stop,
  };
}
