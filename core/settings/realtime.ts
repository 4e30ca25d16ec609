/** Settings of WebSocket sessions that pass through to a provider. */
import { z } from 'zod';

const mebibyte = 1024 * 1024;

/** Limits of WebSockets that pass through to a provider. Times are in milliseconds, sizes in bytes. */
export const realtimeSchema = z
  .strictObject({
    frame: z
      .int()
      .min(1024)
      .max(128 * mebibyte)
      .default(16 * mebibyte)
      .describe('maximum size of a message from the client or the provider, after decompression'),
    queue: z
      .int()
      .min(1024)
      .default(mebibyte)
      .describe(
        'maximum bytes that wait to be written in each direction; above it, reading from the sender pauses',
      ),
    ping: z
      .int()
      .min(20)
      .default(25_000)
      .describe(
        'idle time before Sluice pings the client or the provider. Two unanswered pings close the connection',
      ),
    stalled: z
      .int()
      .min(50)
      .default(30_000)
      .describe('maximum time for which the client or the provider may leave its send buffer full'),
    idle: z
      .int()
      .min(50)
      .default(600_000)
      .describe('maximum time without a message from the client or the provider'),
    lifetime: z.int().min(50).default(3_600_000).describe('maximum duration of a session'),
    compress: z
      .strictObject({
        clients: z.boolean().default(false).describe('compresses messages to and from clients'),
        providers: z.boolean().default(false).describe('compresses messages to and from providers'),
      })
      .prefault({})
      .describe(
        'negotiates `permessage-deflate`. It costs CPU time and memory, and hardly shortens base64 audio',
      ),
  })
  .prefault({});

/** Checked settings of WebSockets that pass through. */
export type RealtimeSettings = z.output<typeof realtimeSchema>;
