/** Starts, finds, renews and ends sessions of the admin password and of users, and limits their number. */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Stores } from 'sluice';
import { entriesOf } from 'sluice/internal';
import type { AdminPassword, User, Users } from './core-types.ts';
import { passwordActor, userActor, type Actor } from './access/actor.ts';

/** A session of somebody who has signed in. */
export interface Session {
  /** First characters of the storage key. Identifies a session, but cannot be used to open it. */
  readonly id: string;
  readonly csrfToken: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Minimum number of milliseconds by which a renewal must extend a session, because each one writes to the database. */
const renewEvery = 300_000;

/** Idle timeout and maximum lifetime of a session in milliseconds. */
export interface SessionTimes {
  readonly idle: number;
  readonly lifetime: number;
}
const usualTimes: SessionTimes = { idle: 12 * 3_600_000, lifetime: 7 * 86_400_000 };

const namespace = 'admin-sessions';

/** Number of characters of a row that serve as the id of its session. */
const shownLength = 8;

/** The most sessions at once of the admin password and of one user: of more, the oldest end. */
const most = 50;
const mostOfUser = 20;

/** Namespace of the sessions of each user: their rows by the id of the user. */
const listNamespace = 'admin-session-lists';

/** A session in the list of its user. */
interface Listed {
  readonly row: string;
  readonly createdAt: number;
}

/** A session of a user, as the user sees it. */
export interface OwnSession {
  readonly id: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

interface StoredSession {
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Id of the user that has signed in; absent for the admin password. */
  readonly user?: string;
  /** Stamp of the admin password or of the user when the session began. */
  readonly generation: string;
}

/** A session that was found by its token, and its actor. */
export interface FoundSession {
  readonly session: Session;
  readonly actor: Actor;
  /** True when its end has moved on. */
  readonly renewed: boolean;
}

/** The sessions of the admin API, shared by all gateways on one database. Tokens are stored as hashes only. */
export class Sessions {
  readonly #stores: Stores;
  readonly #kept;
  readonly #password: AdminPassword;
  readonly #users: Pick<Users, 'current'>;

  readonly #times: SessionTimes;

  constructor(
    stores: Stores,
    password: AdminPassword,
    users: Pick<Users, 'current'>,
    times: SessionTimes = usualTimes,
  ) {
    this.#times = times;
    this.#stores = stores;
    this.#users = users;
    this.#kept = stores.namespace<StoredSession>(namespace);
    this.#password = password;
  }

  /** Starts a session of a user, or of the admin password where no user is given. `token` is the value of the session cookie. */
  async start(user?: User): Promise<{ readonly token: string; readonly session: Session }> {
    const token = randomBytes(32).toString('base64url');
    const now = Date.now();
    const generation = user === undefined ? ((await this.#password.generation()) ?? '') : user.stamp;
    const stored: StoredSession = {
      createdAt: now,
      expiresAt: now + Math.min(this.#times.idle, this.#times.lifetime),
      generation,
      ...(user === undefined ? {} : { user: user.id }),
    };
    const row = rowOf(token);
    if (user === undefined) await this.#endOldest();
    else await this.#list(user.id, { row, createdAt: now });
    await this.#kept.set(row, stored, stored.expiresAt - now);
    return { token, session: sessionOf(token, stored) };
  }

  /**
   * Finds a session by its token; undefined when there is none or it has expired. Being asked for prolongs it, but for a `glance`: `renewed`
   * says that it did.
   */
  async find(token: string, glance = false): Promise<FoundSession | undefined> {
    if (token.length > 100) return undefined;
    const row = rowOf(token);
    const stored = await this.#kept.get(row);
    const now = Date.now();
    if (stored === undefined || stored.expiresAt <= now) return undefined;
    const actor = await this.#actorOf(stored);
    if (actor === undefined) return undefined;
    const expiresAt = Math.min(now + this.#times.idle, stored.createdAt + this.#times.lifetime);
    if (expiresAt <= now) return undefined;
    if (glance || expiresAt - stored.expiresAt < renewEvery)
      return { session: sessionOf(token, stored), actor, renewed: false };
    // `change` and not `set`, because `set` would restore a session that logs out at the same time.
    const renewed = await this.#stores.change<StoredSession>(namespace, row, (current) => ({
      value: { ...current, expiresAt },
      ttl: expiresAt - now,
    }));
    return renewed === undefined ? undefined : { session: sessionOf(token, renewed), actor, renewed: true };
  }

  /** Ends a session. */
  async end(token: string): Promise<void> {
    await this.#kept.delete(rowOf(token));
  }

  /** Returns the ids of all sessions. */
  async running(): Promise<ReadonlySet<string>> {
    const ids = new Set<string>();
    for await (const [row] of entriesOf(this.#kept)) ids.add(idOf(row));
    return ids;
  }

  /** Ends a session by its id. */
  async endById(id: string): Promise<void> {
    const rows: string[] = [];
    for await (const [row] of entriesOf(this.#kept)) if (idOf(row) === id) rows.push(row);
    if (rows.length > 0) await this.#kept.deleteMany(rows);
  }

  /** Returns the actor of a session; undefined where the password or the user has changed since, which ends the session. */
  async #actorOf({ user: id, generation }: StoredSession): Promise<Actor | undefined> {
    if (id === undefined)
      return generation === (await this.#password.generation()) ? passwordActor : undefined;
    const user = await this.#users.current(id);
    return user?.enabled === true && user.stamp === generation ? userActor(user) : undefined;
  }

  /** Returns the running sessions of a user, the newest first. */
  async ofUser(user: User): Promise<readonly OwnSession[]> {
    const running: OwnSession[] = [];
    for (const { row, createdAt } of await this.#listed(user.id)) {
      // oxlint-disable-next-line no-await-in-loop -- twenty at the most
      const stored = await this.#kept.get(row);
      if (stored?.user !== user.id || stored.generation !== user.stamp || stored.expiresAt <= Date.now())
        continue;
      running.push({ id: row.slice(0, shownLength), createdAt, expiresAt: stored.expiresAt });
    }
    return running.toSorted((one, other) => other.createdAt - one.createdAt);
  }

  /** Ends a session of a user. Returns false when the user has no such session. */
  async endOf(user: User, id: string): Promise<boolean> {
    const found = (await this.#listed(user.id)).find(({ row }) => row.slice(0, shownLength) === id);
    return found !== undefined && this.#kept.delete(found.row);
  }

  /** Ends all sessions of a user. */
  async endAllOf(user: User): Promise<void> {
    const rows = (await this.#listed(user.id)).map(({ row }) => row);
    if (rows.length > 0) await this.#kept.deleteMany(rows);
  }

  async #listed(user: string): Promise<readonly Listed[]> {
    return (await this.#stores.namespace<readonly Listed[]>(listNamespace).get(user)) ?? [];
  }

  /** Puts a session into the list of its user, and ends those that are too many. */
  async #list(user: string, session: Listed): Promise<void> {
    const { lifetime } = this.#times;
    let gone: readonly Listed[] = [];
    const add = (listed: readonly Listed[]): readonly Listed[] => {
      const all = [...listed, session].filter(({ createdAt }) => createdAt > Date.now() - lifetime);
      gone = all.slice(0, -mostOfUser);
      return all.slice(-mostOfUser);
    };
    const change = () =>
      this.#stores.change<readonly Listed[]>(listNamespace, user, (listed) => ({
        value: add(listed),
        ttl: lifetime,
      }));
    if ((await change()) === undefined) {
      const isFirst = await this.#stores.add<readonly Listed[]>(listNamespace, user, [session], lifetime);
      if (!isFirst) await change();
    }
    await this.#kept.deleteMany(gone.map(({ row }) => row));
  }

  async #endOldest(): Promise<void> {
    const running: { readonly row: string; readonly createdAt: number }[] = [];
    for await (const [row, stored] of entriesOf(this.#kept))
      if (stored?.user === undefined) running.push({ row, createdAt: stored?.createdAt ?? 0 });
    const surplus = running.length - most + 1;
    if (surplus <= 0) return;
    const oldest = running.toSorted((a, b) => a.createdAt - b.createdAt).slice(0, surplus);
    await this.#kept.deleteMany(oldest.map(({ row }) => row));
  }
}

/** Returns true when a request sent the CSRF token of its session. */
export function provesIntent(session: Session, sent: string | undefined): boolean {
  const expected = Buffer.from(session.csrfToken);
  const given = Buffer.from(sent ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function rowOf(token: string): string {
  return hash('sha256', token);
}

function idOf(row: string): string {
  return row.slice(0, 8);
}

/** Derives the CSRF token from the session's token: it is not stored, and it cannot be used as the session's token. */
function sessionOf(token: string, { expiresAt }: StoredSession): Session {
  return {
    id: idOf(rowOf(token)),
    csrfToken: createHmac('sha256', token).update('csrf').digest('base64url'),
    expiresAt,
  };
}
