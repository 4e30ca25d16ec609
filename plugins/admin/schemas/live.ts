/** Schemas of the live stream of calls. */
import { z } from 'zod';
import { count, time } from './values.ts';

/** A call that runs or has just ended. Some members are set later: key and model when the body was read. */
export const liveCall = z.object({
  id: z.string(),
  at: time,
  phase: z.enum(['waiting', 'answering', 'ended']),
  ip: z.string(),
  operation: z.string(),
  format: z.string(),
  stream: z.boolean(),
  keyId: z.string().optional(),
  keyName: z.string().optional(),
  /** Ids of the owners of the key. */
  team: z.string().optional(),
  member: z.string().optional(),
  organisation: z.string().optional(),
  model: z.string().optional(),
  channel: z.string().optional(),
  upstreamModel: z.string().optional(),
  upstreamFormat: z.string().optional(),
  passThrough: z.boolean().optional(),
  /** Attempts that failed: channel and reason. */
  failedAttempts: z.array(z.string()).optional(),
  firstMs: z.number().optional(),
  input: count.optional(),
  output: count.optional(),
  /** Set in phase `ended`. */
  ended: z.enum(['complete', 'error', 'left']).optional(),
  status: z.int().optional(),
  code: z.string().optional(),
  ms: z.number().optional(),
});

/**
 * The data of every event of the live stream. The event `snapshot` comes first, with the calls that run now; each `calls` after it has
 * those that have changed since, whole: replace them by id. At most four events a second.
 */
export const liveFrame = z.object({
  /** Calls that run now, in all processes. Of an actor who does not see all of them: those that it sees, 500 of each process at most. */
  running: count,
  calls: z.array(liveCall),
  /** Changes that were left out because there were too many. */
  skipped: count.optional(),
});

/** The types of what stands above, as a page takes them. */
export type LiveCall = z.output<typeof liveCall>;
export type LiveFrame = z.output<typeof liveFrame>;
