/** Schemas of the admin endpoints for the status of processes and for reloads. */
import { z } from 'zod';
import { count, time } from './values.ts';

/** Result of a reload. Without `ok` the previous configuration stays in force, for the given reasons. */
export const reloadOutcome = z.object({ ok: z.boolean(), problems: z.array(z.string()) });

/** The processes of this gateway. */
export const status = z.object({
  version: z.string().describe('of the configuration in force; empty where it is not known'),
  since: time.describe('when it came into force'),
  reloads: z.boolean().describe('false: this gateway is part of another program'),
  watching: z.boolean().describe('changes of files are followed'),
  lastReload: reloadOutcome.extend({ at: time, ms: z.number() }).optional(),
  crashes: count.describe('workers that ended by themselves'),
  lastCrashAt: time.optional().describe('when the last of them ended'),
  worker: count.describe('the one that answers'),
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
        rule: z.string().describe('what is kept for how long'),
        rows: count.optional(),
        overdueSeconds: count.describe(
          'for how long the oldest that should have gone or been done is overdue',
        ),
        warning: z.string().optional(),
      }),
    )
    .describe('what is kept in the database, and how it stands'),
  /** Load of the worker that responds. */
  load: z.object({
    running: count,
    waiting: count,
    refused: count.describe('since its start'),
    bodies: count.describe('bytes of bodies that calls hold'),
    lag: z.number().describe('milliseconds that new calls wait before the process looks at them'),
    memory: z.number().describe('share that is full, 0 to 1'),
    strain: z.enum(['lag', 'memory']).optional().describe('why new calls are refused now'),
  }),
});

/** The types of what stands above, as a page takes them. */
export type ReloadOutcome = z.output<typeof reloadOutcome>;
export type Status = z.output<typeof status>;
