/** Settings of routing: how a call finds its channel, and when a channel is left alone. */
import { z } from 'zod';

const time = z.int().min(10);

/** How a call finds its channel. Times are in milliseconds. */
export const routingSchema = z
  .strictObject({
    choice: z
      .enum(['weight', 'least-busy', 'fastest'])
      .default('weight')
      .describe(
        'among targets of one priority: by their weight, by the fewest running calls, or by how soon they answer',
      ),
    attempts: z.int().min(1).max(50).default(6).describe('most attempts of one call'),
    total: time
      .default(600_000)
      .describe('for all attempts of a call together, until the first event of a reply'),
    attempt: time.default(600_000).describe('for one attempt, until the first event of its reply'),
    firstToken: time
      .default(300_000)
      .describe('from the request of an attempt to the first event of its reply'),
    hedge: z
      .union([
        z.literal(false),
        z.strictObject({
          after: time.describe('silence after which the next target is asked too'),
          most: z.int().min(1).max(5).default(1).describe('further targets of one call'),
        }),
      ])
      .default(false)
      .describe('asks further targets while the first one is silent; the first response wins'),
  })
  .prefault({});

/** When a target is left alone for a while. Times are in milliseconds. */
export const healthSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe('false: every target may always be asked'),
    failures: z
      .int()
      .min(1)
      .default(5)
      .describe('failures within the window after which a key rests, when at least half of its calls failed'),
    window: time.default(60_000).describe('time in which failures are counted'),
    rest: time.default(10_000).describe('the first rest; each that follows at once is twice as long'),
    mostRest: time.default(300_000).describe('the longest rest'),
    refusedRest: time
      .default(60_000)
      .describe('the first rest of a key that the provider refuses, or of a model that it does not know'),
    coolDown: time.default(5_000).describe('after a 429 that names no time'),
    mostCoolDown: time.default(120_000).describe('the longest time that a 429 is believed to name'),
  })
  .prefault({});

/** Checked settings of routing. */
export type RoutingSettings = z.output<typeof routingSchema>;

/** Checked settings of health. */
export type HealthSettings = z.output<typeof healthSchema>;
