import { randomBytes } from 'node:crypto';
import { entriesOf, type InternalTools, type Stores } from 'sluice/internal';
import type { Actor } from './access/actor.ts';
import type { AuditEntry, AuditPage } from './schemas/index.ts';
import type { Session } from './sessions.ts';

/** The newest entries are kept, so many and for so many milliseconds. */
const most = 5_000;
const keptFor = 400 * 86_400_000;
/** Between two looks at how many there are. */
const writesPerLook = 100;

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

/** Who changed what, and when: in the database, newest first. */
export class Audit {
  readonly #kept;
  #writes = 0;
  /** Time of the last entry, and number of entries before it in its millisecond: ids sort in the order of the changes. */
  #lastAt = 0;
  #inMillisecond = 0;

  readonly #owners: Owners | undefined;

  constructor(stores: Stores, owners?: Owners) {
    this.#owners = owners;
    this.#kept = stores.namespace<AuditEntry>('admin-audit');
  }

  /** Writes an entry down. Rejects when the database fails: a change that nobody can trace is not made in silence. */
  async note({ actor, ip, session }: Author, change: Change): Promise<void> {
    const at = Date.now();
    this.#inMillisecond = at === this.#lastAt ? this.#inMillisecond + 1 : 0;
    this.#lastAt = at;
    const order = this.#inMillisecond.toString(36).padStart(3, '0');
    const id = `${at.toString(36).padStart(9, '0')}-${order}${randomBytes(6).toString('hex')}`;
    const { kind, id: actorId, name } = actor;
    const by = {
      actor: { kind, id: actorId, name },
      ...(session === undefined ? {} : { session: session.id }),
    };
    const organisation = this.#organisationOf(change) ?? actor.organisation;
    const of = organisation === undefined ? {} : { organisation };
    await this.#kept.set(id, { id, at, ...by, ip, ...of, ...change }, keptFor);
    this.#writes += 1;
    if (this.#writes % writesPerLook === 0) await this.#prune();
  }

  /** A page, newest first. `after` is the id of the last entry of the page before. `organisation`: the changes that concern it alone. */
  async page(limit: number, after?: string, organisation?: string): Promise<AuditPage> {
    const entries: AuditEntry[] = [];
    for await (const [, entry] of entriesOf(this.#kept))
      if (isEntry(entry) && (organisation === undefined || entry.organisation === organisation))
        entries.push(entry);
    const older = entries
      .toSorted((a, b) => (a.id < b.id ? 1 : -1))
      .filter(({ id }) => after === undefined || id < after);
    const page = older.slice(0, limit);
    const last = page.at(-1);
    return older.length > limit && last !== undefined ? { entries: page, next: last.id } : { entries: page };
  }

  /** The organisation that a change concerns: the target, or that of the key, owner or user that is changed. */
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

  async #prune(): Promise<void> {
    const ids: string[] = [];
    for await (const [id] of entriesOf(this.#kept)) ids.push(id);
    if (ids.length > most) await this.#kept.deleteMany(ids.toSorted().slice(0, ids.length - most));
  }
}

/** A damaged entry reads as something else, or as nothing. */
function isEntry(entry: AuditEntry | undefined): entry is AuditEntry {
  return typeof entry?.id === 'string' && typeof entry.at === 'number';
}
