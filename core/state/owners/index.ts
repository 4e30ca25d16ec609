/** The contract of the store of owners of API keys. */
import type { NewEntry } from '../stores.ts';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owner, OwnerKind } from '../../sdk/owner.ts';

type Editable = Omit<Owner, 'id' | 'kind' | 'createdAt'>;

/** Thrown for a change that is not possible. The message is a sentence for the operator. */
export class OwnerMistake extends Error {}

/** The fields to change. `undefined` takes away what may be absent. */
export type OwnerChanges = { readonly [Field in keyof Editable]?: Editable[Field] | undefined };

/** The fields of a new owner. `enabled` is true by default. */
export interface NewOwner extends OwnerChanges {
  readonly kind: OwnerKind;
  readonly name: string;
}

/** An owner that is still to be written. */
export interface PreparedOwner {
  readonly owner: Owner;
  readonly entry: NewEntry;
  /** Says that the entry was written. */
  written(): void;
}

/**
 * The owners of API keys of a gateway. Each process holds all of them, and follows what anybody writes to them. Methods that write throw an
 * {@link OwnerMistake} when a field is wrong, an id is unknown or others belong to an organisation that is to be removed.
 */
export interface Owners {
  /** Brings memory up to date with the database. */
  load(): Promise<void>;
  find(id: string): Owner | undefined;
  /** All of them, the newest first. */
  list(): readonly Owner[];
  create(owner: NewOwner): Promise<Owner>;
  /** Makes an owner that is written together with other entries. */
  prepare(owner: NewOwner): Promise<PreparedOwner>;
  /** `check` sees the owner as it is right before the change, and throws where it must not be made. */
  update(id: string, changes: OwnerChanges, check?: (current: Owner) => void): Promise<Owner>;
  /** Removes an owner for good. Its keys do not work any more, until each is given to somebody else. */
  remove(id: string, check?: (current: Owner) => void): Promise<Owner>;
  /** Throws an {@link OwnerMistake} where a key cannot belong to these. */
  checkOwners(of: Pick<ApiKey, 'team' | 'member'>): void;
  /**
   * The key as its calls are bound: with its owners, their budgets beside its own, and the models that all of them allow. Switched off when an
   * owner is switched off or gone. The same object for the same record until an owner changes.
   */
  effective(key: ApiKey): ApiKey;
  /** True when all owners of a key are known in this process. Otherwise `refresh` may find them. */
  hasAllOf(key: ApiKey): boolean;
  /** As {@link load}, where somebody has written since. The refresh of the keys calls it. */
  refresh(): Promise<void>;
  /** Waits for what is being read. */
  stop(): Promise<void>;
}
