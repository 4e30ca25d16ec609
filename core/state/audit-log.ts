/** The audit log in the database: who changed what, and when. */
import { randomBytes, randomInt } from 'node:crypto';
import type { JsonObject } from '../model/json.ts';
import { surplus } from './fair-share.ts';
import { entriesOf, type Stores } from './stores.ts';

/** The newest entries are kept, so many and for so many milliseconds. */
const most = 5_000;
const keptFor = 400 * 86_400_000;
/** Between two looks at how many there are. */
const writesPerLook = 100;

/** The author of a change: the admin password, a user, a token, or somebody at the command line of a machine with the database. */
export interface AuditActor {
  readonly kind: 'password' | 'user' | 'token' | 'command-line';
  readonly id: string;
  readonly name: string;
}

/** A change as it is noted. */
export interface AuditNote {
  readonly actor?: AuditActor | undefined;
  readonly ip: string;
  readonly session?: string | undefined;
  readonly organisation?: string | undefined;
  readonly action: string;
  /** Id of what was changed. */
  readonly target?: string | undefined;
  readonly before?: JsonObject | undefined;
  readonly after?: JsonObject | undefined;
}

/** A change as it is kept. Ids sort in the order of the changes. */
export interface AuditRecord extends AuditNote {
  readonly id: string;
  readonly at: number;
}

/** The audit log that all gateways on one database share, and the command line with them. */
export class AuditLog {
  readonly #kept;
  #writes = 0;
  /** Time of the last entry, and number of entries before it in its millisecond. */
  #lastAt = 0;
  #inMillisecond = 0;

  constructor(stores: Stores) {
    this.#kept = stores.namespace<AuditRecord>('admin-audit');
  }

  /** Writes an entry. Rejects when the database fails, because a change must not be made without a trace. */
  async add(note: AuditNote): Promise<void> {
    const at = Date.now();
    this.#inMillisecond = at === this.#lastAt ? this.#inMillisecond + 1 : 0;
    this.#lastAt = at;
    const order = this.#inMillisecond.toString(36).padStart(3, '0');
    const id = `${at.toString(36).padStart(9, '0')}-${order}${randomBytes(6).toString('hex')}`;
    await this.#kept.set(id, { id, at, ...note }, keptFor);
    this.#writes += 1;
    // A command of the CLI writes one entry and exits, so only one of `writesPerLook` commands prunes.
    const isSampledCommand = this.#writes === 1 && randomInt(writesPerLook) === 0;
    if (isSampledCommand || this.#writes % writesPerLook === 0) await this.#prune();
  }

  /** All entries, in no order. A damaged one is left out. */
  async *entries(): AsyncGenerator<AuditRecord> {
    for await (const [, entry] of entriesOf(this.#kept)) if (isRecord(entry)) yield entry;
  }

  /** Removes the oldest entries of actors that have more than a fair share, so that a busy actor does not displace the entries of others. */
  async #prune(): Promise<void> {
    const found: { readonly id: string; readonly owner: readonly [string, string] }[] = [];
    for await (const [id, entry] of entriesOf(this.#kept)) {
      const { organisation = '', actor } = isRecord(entry) ? entry : { actor: undefined };
      found.push({ id, owner: [organisation, actor === undefined ? '' : `${actor.kind} ${actor.id}`] });
    }
    const gone = surplus(
      found.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
      most,
      ({ owner }) => owner,
    );
    if (gone.length > 0) await this.#kept.deleteMany(gone.map(({ id }) => id));
  }
}

/** A damaged entry reads as something else, or as nothing. */
function isRecord(entry: AuditRecord | undefined): entry is AuditRecord {
  return typeof entry?.id === 'string' && typeof entry.at === 'number';
}
