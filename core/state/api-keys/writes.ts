/** Creates, changes, rotates and revokes API keys in the database, and finds the one key that a name, an id or a secret means. */
import { hash } from 'node:crypto';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owners } from '../owners/index.ts';
import type { OtherEntry, Stores } from '../stores.ts';
import type { DeletedNames } from './deleted-names.ts';
import { mostMeant, type KeyDirectory } from './directory.ts';
import { NAMESPACE, type DecodeKey, type KeysInUse } from './in-use.ts';
import type { ApiKeys, NewApiKey } from './index.ts';
import type { LastUses } from './last-uses.ts';
import { longestGraceMs, type OldSecrets } from './old-secrets.ts';
import { toStored } from './stored-form.ts';
import { checkRecord, checkSecret, present, randomBase62, recognition, shown } from './records.ts';

/** Services that the writes use. */
export interface KeyWriting {
  readonly owners: Owners;
  readonly stores: Stores;
  readonly decode: DecodeKey;
  readonly inUse: KeysInUse;
  readonly directory: KeyDirectory;
  readonly lastUses: LastUses;
  readonly oldSecrets: OldSecrets;
  readonly deletedNames: DeletedNames;
}

/** Returns the methods that write keys. Writes apply in this process at once. */
export function keyWrites(
  parts: KeyWriting,
): Pick<ApiKeys, 'create' | 'update' | 'rotate' | 'meant' | 'endOldSecret' | 'revoke'> {
  const rows = new KeyRows(parts);
  const { owners, stores, decode, inUse, lastUses, oldSecrets, deletedNames } = parts;
  return {
    async create({ value: given, ...options }: NewApiKey) {
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
      await rows.refreshOwners(record);
      owners.checkOwners(record);
      checkExpiry(record);
      const since = inUse.revision;
      if (!(await stores.add<unknown>(NAMESPACE, record.hash, toStored(record))))
        throw new Error('There is a key with this value already.');
      inUse.remember(record.hash, record, since);
      return { record, value };
    },
    async update(which, changes, check) {
      await rows.refreshOwners(changes);
      return rows.atRow(which, (row) =>
        rows.change(row, (current) => {
          check?.(current);
          const { id, hash: digest, prefix, suffix, createdAt } = current;
          return present({ ...current, ...changes, id, hash: digest, prefix, suffix, createdAt });
        }),
      );
    },
    async rotate(which, graceMs = 0, check) {
      if (!Number.isInteger(graceMs) || graceMs < 0 || graceMs > longestGraceMs)
        throw new Error('An old secret may go on working for 30 days at the most.');
      const value = `sk-${randomBase62(48)}`;
      const fresh = { hash: hash('sha256', value), ...recognition(value) };
      await oldSecrets.refresh();
      const record = await rows.atRow(which, (row) =>
        rows.change(
          row,
          (current) => {
            check?.(current);
            return { ...current, ...fresh };
          },
          (current) => oldSecrets.entryOf(current, fresh.hash, graceMs),
        ),
      );
      return { record, value };
    },
    meant: (which) => rows.resolve(which),
    async endOldSecret(which, check) {
      const key = await rows.resolve(which);
      check?.(key);
      return oldSecrets.end(key.id);
    },
    revoke: (which, check) =>
      rows.atRow(which, async (row) => {
        const since = inUse.revision;
        let key: ApiKey | undefined;
        const existed = await stores.remove<unknown>(NAMESPACE, row, async (value) => {
          key = decode(row, value);
          if (key === undefined) return;
          check?.(key);
          // The name is written first because a crash between the two writes would lose it.
          await deletedNames.keep(key);
        });
        inUse.remember(row, undefined, since);
        if (key === undefined || !existed) return undefined;
        await lastUses.remove(key);
        await oldSecrets.end(key.id);
        return key;
      }),
  };
}

function checkExpiry({ createdAt, expiresAt }: ApiKey): void {
  if (expiresAt !== undefined && expiresAt <= createdAt)
    throw new Error(
      'The API key cannot be saved: expiresAt: must lie in the future, in milliseconds since 1970.',
    );
}

/** Rows of keys in the database. */
class KeyRows {
  readonly #owners: Owners;
  readonly #stores: Stores;
  readonly #decode: DecodeKey;
  readonly #inUse: KeysInUse;
  readonly #directory: KeyDirectory;
  readonly #oldSecrets: OldSecrets;
  readonly #records: ReturnType<Stores['namespace']>;

  constructor({ owners, stores, decode, inUse, directory, oldSecrets }: KeyWriting) {
    this.#owners = owners;
    this.#stores = stores;
    this.#decode = decode;
    this.#inUse = inUse;
    this.#directory = directory;
    this.#oldSecrets = oldSecrets;
    // The row's name is the secret's hash, so that no two keys can have the same secret.
    this.#records = stores.namespace<unknown>(NAMESPACE);
  }

  /** Reads the owners again where a key gets one, because another process may have just created it. */
  async refreshOwners({ team, member }: { team?: unknown; member?: unknown }): Promise<void> {
    if (team !== undefined || member !== undefined) await this.#owners.refresh();
  }

  async #readRow(row: string): Promise<ApiKey | undefined> {
    const value = await this.#records.get(row);
    return value === undefined ? undefined : this.#decode(row, value);
  }

  /**
   * Replaces the current record of a row by the result of `make`, and writes the entry of `besideOf` in the same transaction. Returns undefined
   * when there is no key in this row.
   */
  async change(
    row: string,
    make: (current: ApiKey) => object,
    besideOf?: (current: ApiKey) => OtherEntry,
  ): Promise<ApiKey | undefined> {
    let made: ApiKey | undefined;
    let beside: OtherEntry | undefined;
    const since = this.#inUse.revision;
    const written = await this.#stores.change<unknown>(NAMESPACE, row, (value) => {
      const current = this.#decode(row, value);
      if (current === undefined) return undefined;
      made = checkRecord(make(current));
      if (made.team !== current.team || made.member !== current.member) this.#owners.checkOwners(made);
      beside = besideOf?.(current);
      return { value: toStored(made), key: made.hash, ...(beside !== undefined && { beside }) };
    });
    if (written === undefined || made === undefined) return undefined;
    if (beside !== undefined) this.#oldSecrets.written(beside);
    if (made.hash !== row) this.#inUse.remember(row, undefined, since);
    this.#inUse.remember(made.hash, made, since);
    return made;
  }

  /** Runs `work` on the row of a key, and again where a rotation has moved the key. `work` returns undefined when the key is gone from its row. */
  async atRow<Result>(which: string, work: (row: string) => Promise<Result | undefined>): Promise<Result> {
    const { id, hash: first } = await this.resolve(which);
    let row: string | undefined = first;
    while (row !== undefined) {
      // oxlint-disable no-await-in-loop -- again only when the key was rotated meanwhile
      const done = await work(row);
      if (done !== undefined) return done;
      const now: string | undefined = (await this.#directory.byId(id))?.hash;
      // oxlint-enable no-await-in-loop
      row = now === row ? undefined : now;
    }
    throw new Error(`The key "${shown(which)}" was revoked in the meantime.`);
  }

  /** Returns the one key with this secret, id, name or beginning. Throws when there is none, or more than one. */
  async resolve(which: string): Promise<ApiKey> {
    const exact = (await this.#readRow(hash('sha256', which))) ?? (await this.#directory.byId(which));
    if (exact !== undefined) return exact;
    const found = await this.#directory.meant(which);
    const [first, ...others] = found;
    if (first === undefined) throw new Error(`There is no key "${shown(which)}".`);
    if (others.length === 0) return first;
    const shownKeys = found.slice(0, mostMeant);
    const count = found.length > mostMeant ? `more than ${mostMeant} keys` : `${found.length} keys`;
    const ids = shownKeys.map(({ id, name }) => `${id} (${name})`).join(', ');
    throw new Error(`"${shown(which)}" matches ${count}. Use the id of one: ${ids}.`);
  }
}
