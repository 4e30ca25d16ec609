/** Settings of worker processes, their stop, and overload protection. */
import { z } from 'zod';
import { isProduction, memoryLimit, writesToTerminal } from './environment.ts';

/** Number of processes that serve. */
export const workersSchema = z
  .union([z.int().min(1).max(256), z.literal('auto')])
  .default(1)
  .describe('number of worker processes. `auto`: one for each core');

/** Memory from which on a spare worker is ready by default, in bytes. */
const leastMemory = 1024 * 1024 * 1024;

/** Switch for a spare worker beside those that serve. */
export const spareWorkerSchema = z
  .boolean()
  .default(() => isProduction() && !writesToTerminal() && memoryLimit() >= leastMemory)
  .describe(
    'keeps one more process ready, which accepts connections while a crashed worker is replaced. It needs the memory of an idle worker, 115 to 150 MB. Default true when NODE_ENV is production, standard output is no terminal and there is 1 GiB of memory, else false. Always false with a database in memory',
  );

/** Default announcement of a stop in production: longer than two polls of a load balancer, in milliseconds. */
const announcement = 5_000;

/** Time between the announcement of a stop and the close of the listener, in milliseconds. */
export const drainDelaySchema = z
  .int()
  .min(0)
  .max(600_000)
  .default(() => (isProduction() && !writesToTerminal() ? announcement : 0))
  .describe(
    'time in ms between SIGTERM and the close of the listener, in which /readyz answers 503 and new connections are still served. Default 5000 when NODE_ENV is production and standard output is no terminal, else 0',
  );

/** Limits beyond which calls are refused, before the process is at risk. */
export const overloadSchema = z
  .strictObject({
    running: z.int().min(1).default(20_000).describe('maximum number of running calls in one process'),
    waiting: z
      .int()
      .min(0)
      .default(1_000)
      .describe('maximum number of calls that wait until a running call ends'),
    patience: z
      .int()
      .min(10)
      .default(5_000)
      .describe('maximum time in ms that a call waits for a running call to end before it gets 503'),
    lag: z
      .int()
      .min(50)
      .default(1_000)
      .describe(
        'maximum time in ms that new calls wait for the event loop. While all calls wait longer and the waits do not get shorter, calls that have waited for a quarter of it get 503',
      ),
    memory: z
      .number()
      .min(0.1)
      .max(1)
      .default(0.9)
      .describe('share of the memory that may be used, from 0.1 to 1; above it, new calls get 503'),
    bodies: z
      .int()
      .min(1024)
      .default(512 * 1024 * 1024)
      .describe(
        'maximum bytes of all request bodies that running calls hold, with forms in memory. Counted as they are sent, plus 64 bytes for each JSON value; never less than `limits.body`. A body takes at most about four times as much memory',
      ),
  })
  .prefault({});

/** Checked settings of overload protection. */
export type OverloadSettings = z.output<typeof overloadSchema>;
