/** Stored data of objects that a provider keeps for a client, such as files and batches, and of charges that are still to come. */
import type { JsonObject } from './json.ts';

/**
 * Something that a provider keeps for the account of a channel's key: a file, a batch, a cached content. It belongs to the API key with
 * which it was made, and to everybody else it does not exist. Times are Unix milliseconds.
 */
export interface ProviderObject {
  /** Id of that API key; empty when the gateway requires no keys. */
  readonly owner: string;
  /** Format and collection of the object: `chat-completions/files`. */
  readonly kind: string;
  /** The provider's own id. */
  readonly id: string;
  /** The channel, and the id of the one of its keys that the provider knows it by. */
  readonly channel: string;
  readonly key: string;
  readonly createdAt: number;
  /** As the provider described it last; empty where that was too long to be kept. */
  readonly seen: JsonObject;
  /** Further data of the gateway about the object. */
  readonly known: JsonObject;
  /** Charge that is due when the object has ended; absent if it costs nothing or is already charged. */
  readonly charge?: ObjectCharge;
}

/** A charge that is still to come. */
export interface ObjectCharge {
  /** The record that will tell of it. */
  readonly id: string;
  /** Number of polls, and number of consecutive refused polls. */
  readonly asks: number;
  readonly refusals: number;
  /** Time after which it is abandoned. */
  readonly deadline: number;
  /** Reservation in the budgets of its owner until then; absent without budgets. */
  readonly reservation?: string;
  /** The price rule of its owners when it was made, for its models. Absent where older gateways made it: that of its end counts. */
  readonly pricing?: JsonObject;
}
