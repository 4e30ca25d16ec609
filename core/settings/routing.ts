/** Settings of routing and of circuit breakers. */
import { z } from 'zod';

const time = z.int().min(10);

/** Settings of target selection, timeouts and hedging. Times are in milliseconds. */
export const routingSchema = z
  .strictObject({
    choice: z
      .enum(['weight', 'least-busy', 'fastest'])
      .default('weight')
      .describe(
        'order of targets with equal priority: by weight, by the fewest running calls, or by the shortest time to the first event',
      ),
    attempts: z.int().min(1).max(50).default(6).describe('maximum number of attempts of one call'),
    total: time
      .default(600_000)
      .describe('maximum time of all attempts of a call together, until the first event of a response'),
    attempt: time
      .default(600_000)
      .describe('maximum time of one attempt, until the first event of its response'),
    firstToken: time
      .default(300_000)
      .describe(
        'maximum time from the request of an attempt to the first event of its response, for streams',
      ),
    hedge: z
      .union([
        z.literal(false),
        z.strictObject({
          after: time.describe('time without a first event after which the next target is tried in parallel'),
          most: z
            .int()
            .min(1)
            .max(5)
            .default(1)
            .describe('maximum number of parallel attempts of one call, beside the first'),
        }),
      ])
      .default(false)
      .describe('sends slow calls to further targets in parallel; the first response wins'),
  })
  .prefault({});

/** Settings of the circuit breakers and cooldowns of targets. Times are in milliseconds. */
export const healthSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('false: switches off circuit breakers and cooldowns, so that every target is always tried'),
    failures: z
      .int()
      .min(1)
      .default(5)
      .describe(
        'failures within the window after which the circuit breaker of a key opens, if at least half of its attempts failed',
      ),
    window: time.default(60_000).describe('length of the sliding window in which failures are counted'),
    rest: time
      .default(10_000)
      .describe('first cooldown of an open circuit breaker; after each failed probe it doubles'),
    mostRest: time.default(300_000).describe('maximum cooldown of an open circuit breaker'),
    refusedRest: time
      .default(60_000)
      .describe('first cooldown of a key that the provider rejects, or of a model that it does not know'),
    coolDown: time.default(5_000).describe('cooldown after a 429 without `retry-after`'),
    mostCoolDown: time
      .default(120_000)
      .describe('maximum cooldown after a 429; a longer `retry-after` is shortened to it'),
  })
  .prefault({});

/** Checked settings of routing. */
export type RoutingSettings = z.output<typeof routingSchema>;

/** Checked settings of circuit breakers. */
export type HealthSettings = z.output<typeof healthSchema>;
