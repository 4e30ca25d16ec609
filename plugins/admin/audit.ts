/** Notes and lists changes that somebody made by the admin API, with the organisations that they concern. */
import type { JsonObject } from 'sluice';
import { AuditLog, type InternalTools } from 'sluice/internal';
import type { Stores } from './core-types.ts';
import type { Actor } from './access/actor.ts';
import type { AuditEntry, AuditPage } from './schemas/index.ts';
import type { Session } from './sessions.ts';

/** The author of a change. */
export interface Author {
  readonly actor: Actor;
  /** The client's address. */
  readonly ip: string;
  readonly session?: Session | undefined;
}

/** A change, as whoever makes it describes it. */
export type Change = Omit<AuditEntry, 'id' | 'at' | 'session' | 'actor' | 'ip' | 'organisation'>;

/** Finds the owners whose organisations changes concern. */
type Owners = InternalTools['apiKeys']['owners'];

/** Audit log of changes with actor and time: in the database, newest first. */
export class Audit {
  readonly #log: AuditLog;
  readonly #owners: Owners | undefined;

  constructor(stores: Stores, owners?: Owners) {
    this.#owners = owners;
    this.#log = new AuditLog(stores);
  }

  /** Writes an entry down. Rejects when the database fails: a change that nobody can trace is not made in silence. */
  async note({ actor, ip, session }: Author, change: Change): Promise<void> {
    const { kind, id, name } = actor;
    const organisation = this.#organisationOf(change) ?? actor.organisation;
    await this.#log.add({
      actor: { kind, id, name },
      ip,
      ...(session === undefined ? {} : { session: session.id }),
      ...(organisation === undefined ? {} : { organisation }),
      ...(change as Change & { readonly before?: JsonObject; readonly after?: JsonObject }),
    });
  }

  /** Returns a page, newest first. `after` is the id of the last entry of the page before. `organisation`: the changes that concern it alone. */
  async page(limit: number, after?: string, organisation?: string): Promise<AuditPage> {
    const entries: AuditEntry[] = [];
    for await (const entry of this.#log.entries())
      if (organisation === undefined || entry.organisation === organisation)
        entries.push(entry as AuditEntry);
    const older = entries
      .toSorted((a, b) => (a.id < b.id ? 1 : -1))
      .filter(({ id }) => after === undefined || id < after);
    const page = older.slice(0, limit);
    const last = page.at(-1);
    return older.length > limit && last !== undefined ? { entries: page, next: last.id } : { entries: page };
  }

  /** Returns the organisation that a change concerns: the target, or that of the key, owner or user that is changed. */
  #organisationOf({ target, before, after }: Change): string | undefined {
    const owners = this.#owners;
    const { organisation, team, member } = after ?? before ?? {};
    const ids = [target, organisation, member, team].filter((id) => typeof id === 'string');
    for (const id of ids) {
      const found = owners?.find(id);
      if (found?.kind === 'organisation') return found.id;
      if (found?.organisation !== undefined) return found.organisation;
    }
    return undefined;
  }
}
