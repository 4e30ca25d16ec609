/** Owners of API keys, in the database and in the memory of each process. */
import { z } from 'zod';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owner, OwnerKind } from '../../sdk/owner.ts';
import { ownerFields } from '../api-keys/fields.ts';
import { fromStored, toStored } from '../api-keys/stored-form.ts';
import { present, randomBase62, sentenceOf } from '../api-keys/records.ts';
import { FollowedEntries } from '../followed-entries.ts';
import type { ReportError, Stores } from '../stores.ts';
import { effectiveKey } from './effective-key.ts';
import { OwnerMistake, type NewOwner, type OwnerChanges, type Owners, type PreparedOwner } from './index.ts';

/** Namespace of their entries, by id. */
const NAMESPACE = 'owners';

/** Maximum number of owners: each process holds them all, at about a kilobyte each. */
const maxOwners = 100_000;

const prefixes: Readonly<Record<OwnerKind, string>> = {
  organisation: 'org',
  team: 'team',
  member: 'mem',
  'service-account': 'svc',
};

/** An owner as it is stored. */
const recordSchema: z.ZodType<Owner> = z.object({
  id: z.string(),
  kind: z.enum(['organisation', 'team', 'member', 'service-account']),
  name: ownerFields.name,
  note: ownerFields.note.exactOptional(),
  organisation: ownerFields.organisation.exactOptional(),
  models: ownerFields.models.exactOptional(),
  budgets: ownerFields.budgets.exactOptional(),
  pricing: ownerFields.pricing.exactOptional(),
  endUserBudget: ownerFields.endUserBudget.exactOptional(),
  requestsPerMinute: ownerFields.requestsPerMinute.exactOptional(),
  tokensPerMinute: ownerFields.tokensPerMinute.exactOptional(),
  concurrency: ownerFields.concurrency.exactOptional(),
  addresses: ownerFields.addresses.exactOptional(),
  enabled: z.boolean(),
  createdAt: z.int(),
});

/** Opens the owners that are kept in these stores. `report` gets the errors of records that cannot be read. */
export function openOwners(stores: Stores, report: ReportError = () => {}): Owners {
  return new StoredOwners(stores, report);
}

/** A key with its owners, as they were after so many changes. */
interface Effective {
  readonly key: ApiKey;
  readonly owners: readonly (Owner | undefined)[];
  readonly changes: number;
}

class StoredOwners implements Owners {
  readonly #stores: Stores;
  readonly #report: ReportError;
  readonly #owners = new Map<string, Owner>();
  readonly #followed: FollowedEntries<Owner>;
  /** By the record of the key: one that changes is another object. */
  readonly #effective = new WeakMap<ApiKey, Effective>();
  /** The records that effective keys were made of. */
  readonly #records = new WeakMap<ApiKey, ApiKey>();
  /** Number of times that an owner was put here or taken out. */
  #changes = 0;
  /** All owners in order, as they were after so many changes: to sort 10,000 of them takes a few milliseconds. */
  #listed: { readonly changes: number; readonly list: readonly Owner[] } | undefined;

  constructor(stores: Stores, report: ReportError) {
    this.#stores = stores;
    this.#report = report;
    this.#followed = new FollowedEntries(stores, NAMESPACE, {
      keys: () => this.#owners.keys(),
      put: (id, owner) => this.#put(id, owner),
      decode: (id, value) => this.#decode(id, value),
    });
  }

  load(): Promise<void> {
    return this.#followed.refresh();
  }

  find(id: string): Owner | undefined {
    return this.#owners.get(id);
  }

  list(): readonly Owner[] {
    if (this.#listed?.changes !== this.#changes)
      this.#listed = {
        changes: this.#changes,
        list: [...this.#owners.values()].toSorted((one, other) => other.createdAt - one.createdAt),
      };
    return this.#listed.list;
  }

  async create(given: NewOwner): Promise<Owner> {
    const { owner, entry, written } = await this.prepare(given);
    await this.#stores.add<unknown>(entry.namespace, entry.key, entry.value);
    written();
    return owner;
  }

  async prepare({ kind, ...fields }: NewOwner): Promise<PreparedOwner> {
    // Another process may have made the organisation a moment ago.
    await this.refresh();
    if (this.#owners.size >= maxOwners) throw new OwnerMistake(`There are ${maxOwners} owners already.`);
    const owner = this.#checked({
      enabled: true,
      ...present(fields),
      id: `${prefixes[kind]}_${randomBase62(16)}`,
      kind,
      createdAt: Date.now(),
    });
    return {
      owner,
      entry: { namespace: NAMESPACE, key: owner.id, value: toStored(owner) },
      written: () => this.#followed.written(owner.id, owner),
    };
  }

  async update(id: string, changes: OwnerChanges, check?: (current: Owner) => void): Promise<Owner> {
    let made: Owner | undefined;
    await this.refresh();
    await this.#stores.change<unknown>(NAMESPACE, id, (value) => {
      const current = this.#decode(id, value);
      if (current === undefined) return undefined;
      check?.(current);
      const { kind, createdAt } = current;
      made = this.#checked(present({ ...current, ...changes, id, kind, createdAt }), current);
      return { value: toStored(made) };
    });
    if (made === undefined) throw new OwnerMistake(`There is no owner ${id.slice(0, 100)}.`);
    this.#followed.written(id, made);
    return made;
  }

  async remove(id: string, check?: (current: Owner) => void): Promise<Owner> {
    await this.load();
    const owner = this.#owners.get(id);
    if (owner === undefined) throw new OwnerMistake(`There is no owner ${id.slice(0, 100)}.`);
    check?.(owner);
    const member = this.list().find(({ organisation }) => organisation === id);
    if (member !== undefined)
      throw new OwnerMistake(`"${member.name}" belongs to "${owner.name}". Remove it first, or take it out.`);
    await this.#stores.namespace<unknown>(NAMESPACE).delete(id);
    this.#followed.written(id, undefined);
    return owner;
  }

  checkOwners({ team, member }: Pick<ApiKey, 'team' | 'member'>): void {
    const kindOf = (id: string | undefined) => (id === undefined ? undefined : this.#owners.get(id)?.kind);
    if (team !== undefined && kindOf(team) !== 'team') throw new OwnerMistake(`There is no team ${team}.`);
    const kind = kindOf(member);
    if (member !== undefined && kind !== 'member' && kind !== 'service-account')
      throw new OwnerMistake(`There is no member or service account ${member}.`);
    const [one, other] = [team, member].map((id) => id && this.#owners.get(id)?.organisation);
    if (one !== undefined && other !== undefined && one !== other)
      throw new OwnerMistake('The team and the member of a key must not belong to different organisations.');
  }

  effective(given: ApiKey): ApiKey {
    if (given.team === undefined && given.member === undefined) return given;
    const record = this.#records.get(given) ?? given;
    const known = this.#effective.get(record);
    if (known?.changes === this.#changes) return known.key;
    const owners = this.#chainOf(record);
    const isSame =
      known?.owners.length === owners.length && known.owners.every((one, at) => one === owners[at]);
    const key = isSame ? known.key : effectiveKey(record, owners);
    this.#effective.set(record, { key, owners, changes: this.#changes });
    this.#records.set(key, record);
    return key;
  }

  hasAllOf(key: ApiKey): boolean {
    return !this.#chainOf(key).includes(undefined);
  }

  refresh(): Promise<void> {
    return this.#followed.refresh();
  }

  stop(): Promise<void> {
    return this.#followed.close();
  }

  /** The owners of a key, nearest first. */
  #chainOf({ team, member }: ApiKey): readonly (Owner | undefined)[] {
    const direct = [member, team].flatMap((id) => (id === undefined ? [] : [this.#owners.get(id)]));
    const above = direct.find((owner) => owner?.organisation !== undefined)?.organisation;
    return above === undefined ? direct : [...direct, this.#owners.get(above)];
  }

  #put(id: string, owner: Owner | undefined): void {
    if (owner === undefined) this.#owners.delete(id);
    else this.#owners.set(id, owner);
    this.#changes += 1;
  }

  #decode(id: string, value: unknown): Owner | undefined {
    const result = recordSchema.safeParse(fromStored(value));
    if (result.success && result.data.id === id) return result.data;
    this.#report(new Error(`The owner stored as ${id.slice(0, 40)} cannot be read: its keys do not work.`));
    return undefined;
  }

  /** The organisation that it belonged to `before` may be gone: it must still be changed, and switched off. */
  #checked(fields: object, before?: Owner): Owner {
    const result = recordSchema.safeParse(fields);
    if (!result.success) throw new OwnerMistake(`The owner cannot be saved: ${sentenceOf(result.error)}.`);
    const { kind, organisation, pricing } = result.data;
    if (pricing !== undefined && kind !== 'team' && kind !== 'organisation')
      throw new OwnerMistake('A price rule belongs to a team or an organisation.');
    if (organisation !== undefined) {
      if (kind === 'organisation') throw new OwnerMistake('An organisation cannot belong to another.');
      if (organisation !== before?.organisation && this.#owners.get(organisation)?.kind !== 'organisation')
        throw new OwnerMistake(`There is no organisation ${organisation.slice(0, 100)}.`);
    }
    return result.data;
  }
}
