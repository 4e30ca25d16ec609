import type { JsonObject } from '../../model/json.ts';
import type { ProviderObject } from '../../model/provider-objects.ts';
import type { Lease } from '../leased-rows.ts';
import type { Reservation, Settlement } from '../ledger/index.ts';

/** Which objects of an owner and a kind are wanted. `after` and `before` are ids that the page follows, or stands in front of. */
export interface ObjectQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly after?: string;
  readonly before?: string;
}

/** A page of objects. */
export interface ObjectPage {
  readonly objects: readonly ProviderObject[];
  readonly hasMore: boolean;
}

/** What is charged for a new object. */
export interface NewCharges {
  /** When its provider is to be asked first, for what is to be charged later. */
  readonly askAt?: number;
  /** What is claimed for that; its lease becomes the one given here. */
  readonly reservation?: Reservation;
  /** What is charged now. */
  readonly settlements?: readonly Settlement[];
}

/**
 * What providers keep for keys, in the database, for all gateways that share it. A write is durable when its promise resolves. Whoever asks
 * with another owner finds nothing. Rejects when the database fails.
 */
export interface ObjectStore {
  /**
   * Keeps a new object. One of the same owner and id is kept as it is; another owner's at the same place is forgotten, as the provider has
   * just given its id away. All of it is kept, charged and claimed, or nothing.
   */
  create(object: ProviderObject, charges?: NewCharges): Promise<void>;
  find(owner: string, kind: string, id: string): Promise<ProviderObject | undefined>;
  /** True when somebody has an object of this id. */
  isOwned(kind: string, id: string): Promise<boolean>;
  /** By the time at which they were made. Undefined when `after` or `before` names none of them. */
  list(owner: string, kind: string, query: ObjectQuery): Promise<ObjectPage | undefined>;
  /** Keeps what its provider says of it now, and what else is known now. */
  see(object: ProviderObject, seen: JsonObject, known?: JsonObject): Promise<void>;
  /** Replaces one by what it is now, or removes it, and charges what that costs: false, and nothing is done, when it was changed meanwhile. */
  change(
    object: ProviderObject,
    now: ProviderObject | undefined,
    settlements: readonly Settlement[],
  ): Promise<boolean>;
  /** False when there was none. */
  remove(object: ProviderObject): Promise<boolean>;
  /** Takes objects whose providers are to be asked now and that nobody else asks about; the longest due come first. */
  claim(lease: Lease, limit: number): Promise<readonly ProviderObject[]>;
  /** Takes one, due or not; undefined when it is charged, or somebody else asks about it now. */
  claimOne(lease: Lease, object: ProviderObject): Promise<ProviderObject | undefined>;
  /** Writes what is new of one that is still to be charged, and lets go of it: false when another has claimed it meanwhile. */
  later(lease: Lease, object: ProviderObject, askAt: number): Promise<boolean>;
  /**
   * Charges one, once, gives back what is claimed for it, and keeps what it has left behind: false when it was charged already, and then
   * nothing is written.
   */
  settle(
    object: ProviderObject,
    settlements: readonly Settlement[],
    left: readonly ProviderObject[],
  ): Promise<boolean>;
}
