import { callKey } from '../sdk/call-key.ts';
import type { Handler } from '../sdk/define.ts';
import type { Amounts } from '../model/usage-record.ts';
import type { JsonObject } from '../model/json.ts';
import type { Usage } from '../model/usage.ts';
import type { Settlement } from './ledger/index.ts';

/** What a call costs: left by the plugin that charges, for those that record. */
export interface Charge {
  readonly amounts: Amounts;
  /** What was used: as the provider told it, or estimated from what was seen. Absent when no provider gave anything. */
  readonly usage?: Usage;
  /** Absent when the model has no price: its tokens are counted all the same. */
  readonly price?: JsonObject;
  /** The reservation that the charge settles; absent when nothing had to be reserved. */
  readonly reservation?: string;
}

/** Set once, synchronously, when the reply has ended (also when the client left), before the jobs of `call.onEnd` have all run. */
export const charge = callKey<Charge>('charge');

/**
 * Takes the settlement of a call in place of the bookkeeper: for who keeps something together with it, both or neither. It is called once,
 * in the turn of the event loop that follows the end of the call.
 */
export const settles = callKey<(settlement: Settlement) => void>('settles');

/**
 * A step around the channels, left by the plugin that charges: it runs for every request that is sent for a call, as the plugins behind it
 * have made it, and for none that they answer by themselves.
 */
export const sending = callKey<Handler>('sending');

/** How many providers have a call's request to read, without those that failed: somebody pays for what they read. */
export const reachedProviders = callKey<number>('reached providers');
