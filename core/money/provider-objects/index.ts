/** Types of the store of objects that providers keep for API keys (files, batches and others), with their ownership and their charges. */
import type { JsonObject } from '../../model/json.ts';
import type { ProviderObject } from '../../model/provider-objects.ts';
import type { Lease } from '../leased-rows.ts';
import type { Reservation, Settlement } from '../ledger/index.ts';

/** Selects objects of an owner and a kind. `after` and `before` are ids of the object before or behind the page. */
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

/** Charge for a new object. */
export interface NewCharges {
  /** Time of the first request to the provider for costs that are charged later, in milliseconds since 1970. */
  readonly pollAt?: number;
  /** Reservation for those costs; its lease becomes the one given here. */
  readonly reservation?: Reservation;
  /** Charges that are booked now. */
  readonly settlements?: readonly Settlement[];
}

/**
 * The objects in the database, for all gateways that share it. A write is durable when its promise resolves. Objects are visible to their
 * owner only. Rejects when the database fails.
 */
export interface ObjectStore {
  /**
   * Writes a new object with its charges and its reservation in one transaction. An object of the same owner and id stays as it is; an object
   * of another owner with the id at the same provider is removed, because the provider has reused the id.
   */
  create(object: ProviderObject, charges?: NewCharges): Promise<void>;
  find(owner: string, kind: string, id: string): Promise<ProviderObject | undefined>;
  /** True when any owner has an object of this id. */
  isOwned(kind: string, id: string): Promise<boolean>;
  /** By the time at which they were made. Undefined when `after` or `before` names none of them. */
  list(owner: string, kind: string, query: ObjectQuery): Promise<ObjectPage | undefined>;
  /** Updates an object with the provider's latest representation, and with further facts. */
  see(object: ProviderObject, seen: JsonObject, known?: JsonObject): Promise<void>;
  /** Replaces or removes an object, and charges the costs. Returns false, and does nothing, when the object was changed meanwhile. */
  change(
    object: ProviderObject,
    now: ProviderObject | undefined,
    settlements: readonly Settlement[],
  ): Promise<boolean>;
  /** False when there was none. */
  remove(object: ProviderObject): Promise<boolean>;
  /** Leases objects that are due for a request to their provider; the longest due come first. */
  claim(lease: Lease, limit: number): Promise<readonly ProviderObject[]>;
  /** Leases one object, due or not; undefined when it is charged, or leased by another process. */
  claimOne(lease: Lease, object: ProviderObject): Promise<ProviderObject | undefined>;
  /** Updates an object that is not charged yet, and ends its lease. Returns false when another process has leased it meanwhile. */
  later(lease: Lease, object: ProviderObject, pollAt: number): Promise<boolean>;
  /**
   * Charges an object, once, releases its reservation, and writes the objects that it has produced. Returns false, and writes nothing, when it
   * was charged already.
   */
  settle(
    object: ProviderObject,
    settlements: readonly Settlement[],
    left: readonly ProviderObject[],
  ): Promise<boolean>;
}
