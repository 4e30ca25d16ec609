/** The sessions of one process. */
import type { Session } from './session.ts';

/** Bounds of the table. */
export interface SessionLimits {
  readonly sessions: number;
  readonly sessionsPerKey: number;
  readonly idleMinutes: number;
}

/** Sessions by id. Each belongs to the key that opened it. */
export class Sessions {
  /** In the order of their last use. */
  readonly #all = new Map<string, Session>();
  readonly #limits: SessionLimits;
  readonly #ended: (session: Session) => Promise<void>;
  readonly #timer: NodeJS.Timeout;

  /** `ended` is called for each session that ends. */
  constructor(limits: SessionLimits, ended: (session: Session) => Promise<void>) {
    this.#limits = limits;
    this.#ended = ended;
    const every = Math.min(30_000, limits.idleMinutes * 30_000);
    this.#timer = setInterval(() => this.#expire(), every).unref();
  }

  get size(): number {
    return this.#all.size;
  }

  /** Returns a session of the key; undefined for one that is not there, or belongs to another key. */
  find(id: string, keyId: string): Session | undefined {
    const session = this.#all.get(id);
    if (session === undefined || session.keyId !== keyId) return undefined;
    session.lastUsed = performance.now();
    this.#all.delete(id);
    this.#all.set(id, session);
    return session;
  }

  /** Adds a session. Ends those that were unused longest where there are too many. */
  add(session: Session): void {
    const own = this.#all.values().filter(({ keyId }) => keyId === session.keyId);
    this.#shrink([...own], this.#limits.sessionsPerKey - 1);
    this.#shrink([...this.#all.values()], this.#limits.sessions - 1);
    this.#all.set(session.id, session);
  }

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
    await this.#ended(session);
    await session.close();
  }

  /** Those without an open response go first. */
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
  }
}
