/** Finds keys by what clients send. */
import { hash } from 'node:crypto';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owners } from '../owners/index.ts';
import { stateOf } from './cache.ts';
import type { ApiKeys, FoundApiKey } from './index.ts';
import type { KeysInUse } from './in-use.ts';
import type { LastUses } from './last-uses.ts';
import type { OldSecrets } from './old-secrets.ts';
import { SECRET } from './records.ts';

/** Finds keys by their secrets, also by old ones that still work, and says whether each may be used. */
export class KeyFinding implements Pick<ApiKeys, 'find' | 'isKnown' | 'lookUp' | 'current'> {
  readonly #owners: Owners;
  readonly #inUse: KeysInUse;
  readonly #lastUses: LastUses;
  readonly #oldSecrets: OldSecrets;

  constructor(owners: Owners, inUse: KeysInUse, lastUses: LastUses, oldSecrets: OldSecrets) {
    this.#owners = owners;
    this.#inUse = inUse;
    this.#lastUses = lastUses;
    this.#oldSecrets = oldSecrets;
  }

  #found(key: ApiKey, isUse: boolean): FoundApiKey {
    const state = stateOf(this.#owners.effective(key));
    if (isUse && state.state === 'valid') this.#lastUses.note(key);
    return state;
  }

  #foundByOld(record: ApiKey, row: string, isUse: boolean): FoundApiKey {
    const state = this.#found(this.#oldSecrets.shown(record, row), isUse);
    if (isUse && state.state === 'valid') this.#oldSecrets.note(record);
    return state;
  }

  find(secret: string, isUse = true): FoundApiKey | undefined {
    if (secret.length > SECRET.longest) return undefined;
    const row = hash('sha256', secret);
    const entry = this.#inUse.use(row);
    if (entry !== undefined) return this.#found(entry.key, isUse);
    const replacement = this.#oldSecrets.replacementOf(row);
    const record = replacement === undefined ? undefined : this.#inUse.use(replacement)?.key;
    return record === undefined ? undefined : this.#foundByOld(record, row, isUse);
  }

  isKnown(secret: string): boolean {
    if (secret.length > SECRET.longest || secret.length < SECRET.shortest) return true;
    const row = hash('sha256', secret);
    if (this.#inUse.use(row) !== undefined) return true;
    const replacement = this.#oldSecrets.replacementOf(row) ?? row;
    return this.#inUse.use(replacement) !== undefined || this.#inUse.isStranger(replacement);
  }

  async lookUp(secret: string, isUse = true): Promise<FoundApiKey | undefined> {
    if (this.isKnown(secret)) return this.find(secret, isUse);
    const row = hash('sha256', secret);
    const key = this.#oldSecrets.replacementOf(row) === undefined ? await this.#inUse.read(row) : undefined;
    if (key !== undefined) return this.#found(key, isUse);
    const replacement = this.#oldSecrets.replacementOf(row);
    const record = replacement === undefined ? undefined : await this.#inUse.read(replacement);
    return record === undefined ? undefined : this.#foundByOld(record, row, isUse);
  }

  current(key: ApiKey): FoundApiKey | undefined {
    const replacement =
      this.#inUse.use(key.hash) === undefined ? this.#oldSecrets.replacementOf(key.hash) : undefined;
    const row = replacement ?? key.hash;
    const record = this.#inUse.use(row)?.key;
    if (record !== undefined)
      return replacement === undefined
        ? this.#found(record, false)
        : this.#foundByOld(record, key.hash, false);
    if (this.#inUse.isStranger(row)) return undefined;
    // `Refreshing` reports failures.
    this.#inUse.read(row).catch(() => {});
    return stateOf(this.#owners.effective(key));
  }
}
