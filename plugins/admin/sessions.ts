import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { entriesOf, type AdminPassword, type Stores } from 'sluice/internal';

/** A session of somebody who knew the password. */
export interface Session {
  /** The first characters of what it is stored under: tells sessions apart, and opens none. */
  readonly id: string;
  readonly csrfToken: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** How long a session lasts after its last use, and how often that is written down, in milliseconds. */
export const lifetime = 12 * 3_600_000;
const renewEvery = 300_000;

const namespace = 'admin-sessions';

/** The most sessions at once: of more, the oldest end. */
const most = 50;

interface StoredSession {
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The password's, at the beginning. */
  readonly generation: string;
}

/** The sessions of the admin API, shared by all gateways on one database. Tokens are stored as hashes only. */
export class Sessions {
  readonly #stores: Stores;
  readonly #kept;
  readonly #password: AdminPassword;

  constructor(stores: Stores, password: AdminPassword) {
    this.#stores = stores;
    this.#kept = stores.namespace<StoredSession>(namespace);
    this.#password = password;
  }

  /** Begins a session. The token is what its owner holds. */
  async start(): Promise<{ readonly token: string; readonly session: Session }> {
    const token = randomBytes(32).toString('base64url');
    const now = Date.now();
    const generation = (await this.#password.generation()) ?? '';
    const stored: StoredSession = { createdAt: now, expiresAt: now + lifetime, generation };
    await this.#endOldest();
    await this.#kept.set(rowOf(token), stored, lifetime);
    return { token, session: sessionOf(token, stored) };
  }

  /**
   * Finds a session by its token; undefined when there is none or it has expired. Being asked for prolongs it, but for a `glance`: `renewed`
   * says that it did.
   */
  async find(
    token: string,
    glance = false,
  ): Promise<{ readonly session: Session; readonly renewed: boolean } | undefined> {
    if (token.length > 100) return undefined;
    const row = rowOf(token);
    const stored = await this.#kept.get(row);
    const now = Date.now();
    if (stored === undefined || stored.expiresAt <= now) return undefined;
    if (stored.generation !== (await this.#password.generation())) return undefined;
    if (glance || stored.expiresAt - now > lifetime - renewEvery)
      return { session: sessionOf(token, stored), renewed: false };
    // Not written anew: whoever logs out at the same time would find the session alive.
    const renewed = await this.#stores.change<StoredSession>(namespace, row, (current) => ({
      value: { ...current, expiresAt: now + lifetime },
      ttl: lifetime,
    }));
    return renewed === undefined ? undefined : { session: sessionOf(token, renewed), renewed: true };
  }

  /** Ends a session. */
  async end(token: string): Promise<void> {
    await this.#kept.delete(rowOf(token));
  }

  async #endOldest(): Promise<void> {
    const running: { readonly row: string; readonly createdAt: number }[] = [];
    for await (const [row, stored] of entriesOf(this.#kept))
      running.push({ row, createdAt: stored?.createdAt ?? 0 });
    const surplus = running.length - most + 1;
    if (surplus <= 0) return;
    const oldest = running.toSorted((a, b) => a.createdAt - b.createdAt).slice(0, surplus);
    await this.#kept.deleteMany(oldest.map(({ row }) => row));
  }
}

/** Whether a request that changes something carries its session's CSRF token. */
export function provesIntent(session: Session, sent: string | undefined): boolean {
  const expected = Buffer.from(session.csrfToken);
  const given = Buffer.from(sent ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function rowOf(token: string): string {
  return hash('sha256', token);
}

/** The CSRF token follows from the other: nothing of it is stored, and knowing it opens no session. */
function sessionOf(token: string, { expiresAt }: StoredSession): Session {
  return {
    id: rowOf(token).slice(0, 8),
    csrfToken: createHmac('sha256', token).update('csrf').digest('base64url'),
    expiresAt,
  };
}
