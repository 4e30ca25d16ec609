/** Records of sessions in the database, from which any worker of any gateway can serve a session that keeps no state in one worker. */
import { createHash } from 'node:crypto';
import { GatewayError, type PluginTools } from 'sluice';

/** Data with which a worker serves a session that another one began. */
export interface SessionRecord {
  /** Id of the key that began it. */
  readonly keyId: string;
  /** Path of the endpoint. */
  readonly path: string;
  /** Version of the protocol that the client requested. */
  readonly version: string;
}

/** Sessions of one key, the one that was unused longest first. */
type Listed = readonly (readonly [entry: string, usedAt: number])[];

/** Bounds of the records. */
export interface RecordLimits {
  readonly path: string;
  readonly sessionsPerKey: number;
  readonly idleMinutes: number;
}

const records = 'mcp-sessions';
const lists = 'mcp-session-lists';

/** Maximum number of characters of an id of a session. */
const maxId = 100;

/** Maximum number of characters of a version of the protocol that is recorded. */
const maxVersion = 40;

/** Stores the records, and a list of them for each key. Ids are stored as hashes, so that the database does not expose a session. */
export class SessionRecords {
  readonly #stores: PluginTools['stores'];
  readonly #kept;
  readonly #limits: RecordLimits;
  /** Lifetime of a record in milliseconds, and age at which its next use renews it. A session lasts for `idleMinutes` at least. */
  readonly #lifetimeMs: number;
  readonly renewMs: number;

  constructor(stores: PluginTools['stores'], limits: RecordLimits) {
    this.#stores = stores;
    this.#kept = stores.namespace<SessionRecord>(records);
    this.#limits = limits;
    this.renewMs = Math.ceil(limits.idleMinutes * 6_000);
    this.#lifetimeMs = this.renewMs * 11;
  }

  /** Adds a record. Of more than a key may have, those that were unused longest are removed. */
  async add(id: string, keyId: string, version: string): Promise<void> {
    const { path, sessionsPerKey } = this.#limits;
    const entry = hashOf(id);
    await orUnavailable(async () => {
      await this.#kept.set(entry, { keyId, path, version: version.slice(0, maxVersion) }, this.#lifetimeMs);
      let surplus: string[] = [];
      await this.#changeList(keyId, (listed) => {
        const all = [...listed, [entry, Date.now()] as const];
        surplus = all.slice(0, -sessionsPerKey).map(([one]) => one);
        return all.slice(-sessionsPerKey);
      });
      if (surplus.length > 0) await this.#kept.deleteMany(surplus);
    });
  }

  /** Returns the record of a session of the key; undefined for one that is not there, or belongs to another key. */
  async find(id: string, keyId: string): Promise<SessionRecord | undefined> {
    if (id.length > maxId) return undefined;
    const record = await orUnavailable(() => this.#kept.get(hashOf(id)));
    return record?.keyId === keyId && record.path === this.#limits.path ? record : undefined;
  }

  async has(id: string, keyId: string): Promise<boolean> {
    return (await this.find(id, keyId)) !== undefined;
  }

  /** Returns true when the session has not ended anywhere, and makes it last longer. */
  async renew(id: string, keyId: string): Promise<boolean> {
    const entry = hashOf(id);
    // Changes the record, because writing a new one would revive a session that ends at the same time.
    const renewed = await orUnavailable(() =>
      this.#stores.change<SessionRecord>(records, entry, (value) => ({ value, ttl: this.#lifetimeMs })),
    );
    if (renewed === undefined) return false;
    await orUnavailable(() =>
      this.#changeList(keyId, (listed) => [...without(listed, entry), [entry, Date.now()]]),
    );
    return true;
  }

  /** Ends the session for all workers. */
  async end(id: string, keyId: string): Promise<void> {
    const entry = hashOf(id);
    await orUnavailable(async () => {
      await this.#kept.delete(entry);
      await this.#changeList(keyId, (listed) => without(listed, entry));
    });
  }

  async #changeList(keyId: string, change: (listed: Listed) => Listed): Promise<void> {
    const key = hashOf(`${this.#limits.path} ${keyId}`);
    const ttl = this.#lifetimeMs;
    const changed = (listed: Listed): Listed => {
      const since = Date.now() - ttl;
      return change(listed.filter(([, usedAt]) => usedAt > since));
    };
    // The list may expire between the two.
    for (let tries = 0; tries < 3; tries += 1) {
      // oxlint-disable no-await-in-loop -- one turn unless the list expires meanwhile
      if (await this.#stores.add(lists, key, changed([]), ttl)) return;
      const written = await this.#stores.change<Listed>(lists, key, (value) => ({
        value: changed(value),
        ttl,
      }));
      if (written !== undefined) return;
      // oxlint-enable no-await-in-loop
    }
    throw new Error('The list of sessions of a key could not be written.');
  }
}

function without(listed: Listed, entry: string): Listed {
  return listed.filter(([one]) => one !== entry);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Rejects with 503 where the database fails: a 404 would end sessions that go on. */
async function orUnavailable<T>(job: () => Promise<T>): Promise<T> {
  try {
    return await job();
  } catch (cause) {
    throw new GatewayError('server_is_overloaded', 'The gateway cannot read its sessions now. Try again.', {
      origin: 'gateway',
      retryAfter: 1,
      cause,
    });
  }
}
