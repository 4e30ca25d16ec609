/** Budgets: reserves what a call may cost, and refuses it when the budget is spent. */
import { z } from 'zod';
import { definePlugin, type Call, type InternalTools, type Next } from 'sluice/internal';
import { Quota } from './quota.ts';

const options = z.strictObject({
  /** The output limit that a call is sent with near the end of a budget, when it has none and its model gives no less. */
  assumedOutput: z.int().min(1).max(10_000_000).default(32_000),
  /** The number of uses of tools that the provider runs, for calls that state no limit of them. Keys with a budget in dollars are held to it. */
  assumedToolUses: z.int().min(1).max(1000).default(10),
  /** Seconds after which the claim of a call is given back whose gateway was killed. Running calls renew theirs. */
  lease: z.number().min(1).max(3600).default(60),
  /**
   * Whether a process reserves ahead for keys that call often, so that most of their calls need no reservation in the database. What no call
   * uses is given back after a second without calls, and when another call has no room. False: each call makes a reservation.
   */
  reserveAhead: z.boolean().default(true),
});

/**
 * Callers pay for what they use, once, whatever the format and however the call ends. A key with budgets gets 429 for a call that may
 * exceed one of them; what a call may come to is reserved before it, so that calls at the same time cannot exceed it together.
 */
export default definePlugin({
  name: 'quota',
  stage: 'admit',
  // The usage log keeps the records with which accounts settle their charges.
  after: ['usage-log'],
  reads: 'usage',
  options,
  setup(chosen, tools: InternalTools) {
    const quota = new Quota(chosen, tools);
    return (call: Call, next: Next) => quota.handle(call, next);
  },
});
