/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { InternalTools, chargedHolders } from 'sluice/internal';

/** Books what calls cost. */
export type Bookkeeper = InternalTools['bookkeeper'];

/** Budgets and what was spent of them. */
export type Ledger = InternalTools['ledger'];

/** Part of a budget that is held for a call. */
export type Reservation = Awaited<ReturnType<Bookkeeper['reserve']>>;

/** Charge and record of a call that has ended. */
export type Settlement = Parameters<Bookkeeper['enqueue']>[0];

/** Prices of models. */
export type Prices = InternalTools['prices'];

/** Holders that are charged besides a key. */
export type ChargedHolders = ReturnType<typeof chargedHolders>;

/** Record of a call. */
export type UsageRecord = Settlement['record'];

/** Channels, and the models that they serve. */
export type Catalog = InternalTools['catalog'];

/** API keys, with those who own them. */
export type ApiKeys = InternalTools['apiKeys'];
