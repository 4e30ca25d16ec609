/** Budgets: reserves what a call may cost, and refuses it when the budget is spent. */
import { z } from 'zod';
import { definePlugin, type Call, type InternalTools, type Next } from 'sluice/internal';
import { Quota } from './quota.ts';

const options = z.strictObject({
  /** Output limit, in tokens, that is set in calls without one when the budget is nearly spent. Not more than the limit of the model. */
  assumedOutput: z.int().min(1).max(10_000_000).default(32_000),
  /**
   * Number of uses of tools that the provider runs, for calls that set no limit of their own. Enforced for keys with a budget in dollars.
   */
  assumedToolUses: z.int().min(1).max(1000).default(10),
  /** Seconds after which the reservation of a call is released if its gateway was killed. Running calls renew their reservations. */
  lease: z.number().min(1).max(3600).default(60),
  /**
   * Reserves budget ahead for keys that call often, so that most of their calls need no reservation in the database. Unused budget is
   * released after a second without calls, or when another call needs it. `false`: each call makes a reservation.
   */
  reserveAhead: z.boolean().default(true),
});

/**
 * Charges each call to the budgets of its key exactly once, in every format and however the call ends. A call that may exceed a budget gets
 * 429. The maximum cost of a call is reserved before it is sent, so that concurrent calls cannot exceed a budget together.
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
