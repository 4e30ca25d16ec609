/** Secrets of rotated keys that go on working for a while beside the new ones. */
import { z } from 'zod';
import type { ApiKey } from '../../sdk/api-key.ts';
import { FollowedEntries } from '../followed-entries.ts';
import type { OtherEntry, ReportError, Stores } from '../stores.ts';
import type { OldSecret } from './index.ts';
import { LastUses } from './last-uses.ts';

/** Namespace of their entries, by the ids of the keys. Gateways of the version before do not read it: for them the old secret is over. */
const NAMESPACE = 'api-keys-old';

/** Longest time for which an old secret works, in milliseconds. */
export const longestGraceMs = 30 * 86_400_000;

/** Maximum number of old secrets that work at once: each process holds them all, at about 300 bytes each. */
const maxOldSecrets = 20_000;

const recordSchema = z.object({
  id: z.string(),
  /** Hash of the old secret, and of the secret that replaced it. */
  hash: z.string(),
  current: z.string(),
  prefix: z.string(),
  suffix: z.string(),
  since: z.int(),
  until: z.int(),
});

type Stored = z.output<typeof recordSchema>;

/**
 * The old secrets that work, all in memory, so that a call asks nobody for them. An old secret leads to the key that has the secret which
 * replaced it, and to nothing once that key is deleted or has another secret.
 */
export class OldSecrets {
  readonly #stores: Stores;
  readonly #report: ReportError;
  readonly #lastUses: LastUses;
  readonly #byId = new Map<string, Stored>();
  readonly #byHash = new Map<string, Stored>();
  /** Keys as a call with an old secret sees them: with the hash of that, by the records that they were made of. */
  readonly #shown = new WeakMap<ApiKey, ApiKey>();
  readonly #followed: FollowedEntries<Stored>;

  constructor(stores: Stores, report: ReportError) {
    this.#stores = stores;
    this.#report = report;
    this.#followed = new FollowedEntries(stores, NAMESPACE, {
      keys: () => this.#byId.keys(),
      put: (id, old) => this.#put(id, old),
      decode: (id, value) => this.#decode(id, value),
    });
    this.#lastUses = new LastUses(stores.namespace<number>(`${NAMESPACE}-used`), longestGraceMs);
  }

  /** Returns the hash of the secret that replaced an old one; undefined for a hash that is none of an old secret that works. */
  replacementOf(hash: string): string | undefined {
    const old = this.#byHash.get(hash);
    return old === undefined || old.until <= Date.now() ? undefined : old.current;
  }

  /** Returns the key as a call with this old secret sees it. */
  shown(record: ApiKey, hash: string): ApiKey {
    const known = this.#shown.get(record);
    if (known?.hash === hash) return known;
    const made = { ...record, hash };
    this.#shown.set(record, made);
    return made;
  }

  /** The old secret of a key was used now. */
  note(key: ApiKey): void {
    this.#lastUses.note(key);
  }

  /** Returns the old secrets of keys that still work, in the order of the keys. */
  async of(keys: readonly ApiKey[]): Promise<readonly (OldSecret | undefined)[]> {
    const old = keys.map(({ id, hash }) => {
      const found = this.#byId.get(id);
      return found?.current === hash && found.until > Date.now() ? found : undefined;
    });
    const present = old.filter((one) => one !== undefined);
    const times = new Map(
      (await this.#lastUses.of(present)).map((time, index) => [present[index]?.id, time]),
    );
    return old.map((one) => {
      if (one === undefined) return undefined;
      const { prefix, suffix, until, since } = one;
      const used = times.get(one.id);
      // What was noted before is of a secret that is over.
      return { prefix, suffix, until, ...(used !== undefined && used >= since && { lastUsedAt: used }) };
    });
  }

  /** Returns the entry to write beside a key whose secret is replaced. Throws an Error when too many old secrets are valid. */
  entryOf(before: ApiKey, current: string, graceMs: number): OtherEntry {
    const { id, hash, prefix, suffix } = before;
    if (graceMs <= 0) return { namespace: NAMESPACE, key: id };
    if (!this.#byId.has(id) && this.#byId.size >= maxOldSecrets)
      throw new Error(
        `There are ${maxOldSecrets} keys whose old secrets still work. End some of these first.`,
      );
    const since = Date.now();
    const value: Stored = { id, hash, current, prefix, suffix, since, until: since + graceMs };
    return { namespace: NAMESPACE, key: id, value, ttl: graceMs };
  }

  /** In force here at once. Other processes read it. */
  written({ key, value }: OtherEntry): void {
    this.#followed.written(key, value === undefined ? undefined : this.#decode(key, value));
    this.#lastUses.forget({ id: key });
  }

  /** Ends the old secret of a key. Returns false when there was none that worked. */
  async end(id: string): Promise<boolean> {
    await this.refresh();
    const old = this.#byId.get(id);
    if (old === undefined) return false;
    const works = old.until > Date.now();
    await this.#stores.namespace<unknown>(NAMESPACE).delete(id);
    this.written({ namespace: NAMESPACE, key: id });
    await this.#lastUses.remove({ id });
    return works;
  }

  /** Brings memory up to date where somebody has written since. */
  refresh(): Promise<void> {
    return this.#followed.refresh();
  }

  /** Writes down when old secrets were last used. */
  save(): Promise<void> {
    return this.#lastUses.save();
  }

  /** Waits for what is being read. */
  close(): Promise<void> {
    return this.#followed.close();
  }

  #put(id: string, old: Stored | undefined): void {
    const before = this.#byId.get(id);
    if (before !== undefined) this.#byHash.delete(before.hash);
    this.#byId.delete(id);
    if (old === undefined) return;
    this.#byId.set(id, old);
    this.#byHash.set(old.hash, old);
  }

  #decode(id: string, value: unknown): Stored | undefined {
    const { data, success } = recordSchema.safeParse(value);
    if (success && data.id === id) return data;
    this.#report(new Error(`The old secret stored as ${id.slice(0, 40)} cannot be read, and does not work.`));
    return undefined;
  }
}
