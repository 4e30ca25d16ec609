/** Stored data of objects that a provider keeps for a client, such as files and batches, and of charges that are still to come. */
import type { JsonObject } from './json.ts';

/**
 * Something that a provider keeps for the account of a channel's key: a file, a batch, a cached content. It belongs to the API key with
 * which it was made, and to everybody else it does not exist. Times are Unix milliseconds.
 */
export interface ProviderObject {
  /** The id of that API key, empty where none is asked. */
  readonly owner: string;
  /** Whose API it belongs to, and its collection there: `chat-completions/files`. */
  readonly kind: string;
  /** The provider's own id. */
  readonly id: string;
  /** The channel, and the id of the one of its keys that the provider knows it by. */
  readonly channel: string;
  readonly key: string;
  readonly createdAt: number;
  /** As the provider described it last; empty where that was too long to be kept. */
  readonly seen: JsonObject;
  /** What the gateway knows of it besides. */
  readonly known: JsonObject;
  /** What is charged when it has come to its end; absent for what costs nothing, and for what has been charged. */
  readonly charge?: ObjectCharge;
}

/** A charge that is still to come. */
export interface ObjectCharge {
  /** The record that will tell of it. */
  readonly id: string;
  /** How often the provider was asked, and how many times in a row it refused to tell. */
  readonly asks: number;
  readonly refusals: number;
  /** When it is given up. */
  readonly deadline: number;
  /** What its owner's budgets hold for it until then; absent where there are none. */
  readonly reservation?: string;
  /** The price rule of its owners when it was made, for its models. Absent where older gateways made it: that of its end counts. */
  readonly pricing?: JsonObject;
}
