/** Schemas of the admin endpoints for the status of processes and for reloads. */
import { z } from 'zod';
import { count, time } from './values.ts';

/** Result of a reload. If `ok` is false, the previous configuration stays in force, for the given reasons. */
export const reloadOutcome = z.object({ ok: z.boolean(), problems: z.array(z.string()) });

/** The processes of this gateway. */
export const status = z.object({
  version: z.string().describe('version of the configuration in force; empty if unknown'),
  since: time.describe('time at which the configuration came into force'),
  reloads: z.boolean().describe('false: the gateway cannot reload, because it runs inside another program'),
  watching: z.boolean().describe('true: reloads when files change'),
  lastReload: reloadOutcome.extend({ at: time, ms: z.number() }).optional(),
  crashes: count.describe('number of crashed workers'),
  lastCrashAt: time.optional().describe('time of the last crash'),
  worker: count.describe('number of the worker that responds'),
  workers: z.array(
    z.object({
      worker: count,
      pid: count,
      state: z.enum(['starting', 'serving', 'spare', 'leaving']),
      version: z.string(),
      since: time,
    }),
  ),
  kept: z
    .array(
      z.object({
        what: z.string(),
        rule: z.string().describe('retention rule'),
        rows: count.optional(),
        overdueSeconds: count.describe(
          'seconds by which the oldest row is overdue for removal or processing',
        ),
        warning: z.string().optional(),
      }),
    )
    .describe('stored data in the database, with its retention and backlog'),
  /** Load of the worker that responds. */
  load: z.object({
    running: count,
    waiting: count,
    refused: count.describe('number of refused calls since the start of the worker'),
    bodies: count.describe('bytes of request bodies that running calls hold'),
    lag: z.number().describe('milliseconds that new calls wait for the event loop'),
    memory: z.number().describe('used share of the memory, 0 to 1'),
    strain: z
      .enum(['lag', 'memory'])
      .optional()
      .describe('reason why new calls are refused; absent if none are'),
  }),
});

/** Types of these schemas, for the dashboard. */
export type ReloadOutcome = z.output<typeof reloadOutcome>;
export type Status = z.output<typeof status>;
