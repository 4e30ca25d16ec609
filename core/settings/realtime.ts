/** The limits of sessions that pass through. */
import { z } from 'zod';

const mebibyte = 1024 * 1024;

/** WebSockets that pass through to a provider. Times are in milliseconds, sizes in bytes. */
export const realtimeSchema = z
  .strictObject({
    frame: z
      .int()
      .min(1024)
      .max(128 * mebibyte)
      .default(16 * mebibyte)
      .describe('largest message of either side, after decompression'),
    queue: z
      .int()
      .min(1024)
      .default(mebibyte)
      .describe('what may wait to be written in each direction before the other side is no longer read'),
    ping: z
      .int()
      .min(20)
      .default(25_000)
      .describe(
        'silence after which either side is asked whether it is there; two pings without an answer are its end',
      ),
    stalled: z
      .int()
      .min(50)
      .default(30_000)
      .describe('longest time that either side may leave its buffer full'),
    idle: z.int().min(50).default(600_000).describe('longest time without a message from either side'),
    lifetime: z.int().min(50).default(3_600_000).describe('longest session'),
    compress: z
      .strictObject({
        clients: z.boolean().default(false).describe('with clients'),
        providers: z.boolean().default(false).describe('with providers'),
      })
      .prefault({})
      .describe(
        'whether permessage-deflate is agreed to: it costs time and memory, and base64 audio gains little',
      ),
  })
  .prefault({});

/** Checked settings of such sockets. */
export type RealtimeSettings = z.output<typeof realtimeSchema>;
