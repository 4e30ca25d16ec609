/** The sessions of one process. */
import type { Log } from 'sluice';
import type { SessionRecords } from './records.ts';
import type { Session } from './session.ts';

/** Milliseconds after which a worker checks again whether a session has ended in another worker. */
const checkMs = 1_000;

/** Maximum number of milliseconds between two looks for sessions that have ended. */
const lookMs = 10_000;

/** Bounds of the table. */
export interface SessionLimits {
  readonly sessions: number;
  readonly sessionsPerKey: number;
  readonly idleMinutes: number;
}

/** Dependencies of the table. */
export interface SessionParts {
  readonly records: SessionRecords;
  readonly log: Log;
  /** Called for each session that ends in this process. */
  readonly ended: (session: Session) => Promise<void>;
}

/** Sessions by id. Each belongs to the key that opened it. */
export class Sessions {
  /** Sessions in the order of their last use. */
  readonly #all = new Map<string, Session>();
  readonly #limits: SessionLimits;
  readonly #parts: SessionParts;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  constructor(limits: SessionLimits, parts: SessionParts) {
    this.#limits = limits;
    this.#parts = parts;
    const every = Math.min(lookMs, limits.idleMinutes * 30_000);
    this.#timer = setInterval(() => this.#expire(), every).unref();
  }

  /** Returns a session of the key; undefined for one that is not in this process, has ended, or belongs to another key. */
  async find(id: string, keyId: string): Promise<Session | undefined> {
    const session = this.#all.get(id);
    if (session === undefined || session.keyId !== keyId) return undefined;
    session.lastUsed = performance.now();
    this.#all.delete(id);
    this.#all.set(id, session);
    return (await this.#isAlive(session)) ? session : undefined;
  }

  /** Adds a session. Ends those that were unused longest where there are too many. */
  add(session: Session): void {
    const own = this.#all.values().filter(({ keyId }) => keyId === session.keyId);
    this.#shrink([...own], this.#limits.sessionsPerKey - 1);
    this.#shrink([...this.#all.values()], this.#limits.sessions - 1);
    this.#all.set(session.id, session);
  }

  /** Removes a session from this process. */
  remove(id: string): void {
    const session = this.#all.get(id);
    if (session === undefined) return;
    this.#all.delete(id);
    void this.#end(session);
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.#all.values();
  }

  /** Ends all sessions. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const all = [...this.#all.values()];
    this.#all.clear();
    // Connections to servers end as well, and their subscriptions with them.
    await Promise.all(all.map((session) => session.close()));
  }

  async #end(session: Session): Promise<void> {
    // The streams and processes of the session do not wait for servers that are slow to unsubscribe.
    await Promise.allSettled([this.#parts.ended(session), session.close()]);
  }

  /** Evicts sessions without an open response first. */
  #shrink(sessions: readonly Session[], most: number): void {
    const excess = sessions.length - most;
    if (excess <= 0) return;
    const ordered = [
      ...sessions.filter(({ open }) => open === 0),
      ...sessions.filter(({ open }) => open > 0),
    ];
    for (const { id } of ordered.slice(0, excess)) this.remove(id);
  }

  #expire(): void {
    const before = performance.now() - this.#limits.idleMinutes * 60_000;
    for (const session of this.#all.values())
      if (session.open === 0 && session.lastUsed < before) this.remove(session.id);
    void this.#checkOpen();
  }

  /** Ends open responses of sessions that have ended elsewhere. The records of the others are renewed. */
  async #checkOpen(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    // oxlint-disable-next-line no-await-in-loop -- one after the other, because nobody waits for it
    for (const session of this.#all.values()) if (session.open > 0) await this.#isAlive(session);
    this.#isLooking = false;
  }

  /** Returns false for a session that has ended elsewhere, and removes it. A database that fails ends none that this process has. */
  async #isAlive(session: Session): Promise<boolean> {
    const { record, id, keyId } = session;
    const { records, log } = this.#parts;
    const now = performance.now();
    if (record === undefined || now - record.checkedAt < Math.min(checkMs, records.renewMs)) return true;
    record.checkedAt = now;
    try {
      const isDue = now - record.renewedAt >= records.renewMs;
      const isAlive = isDue ? await records.renew(id, keyId) : await records.has(id, keyId);
      if (isDue) record.renewedAt = now;
      if (!isAlive) this.remove(id);
      return isAlive;
    } catch (error) {
      log.debug({ session: id, error }, 'the record of a session could not be read');
      return true;
    }
  }
}
