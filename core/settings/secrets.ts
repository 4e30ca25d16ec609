/** Schema of the settings of secrets that the config names by reference. */
import { z } from 'zod';

/** Settings of reading secrets that the config names by reference. */
export const secretsSchema = z
  .strictObject({
    refresh: z
      .int()
      .min(1_000)
      .max(86_400_000)
      .default(300_000)
      .describe('interval at which secrets are read again. The gateway reloads when one has changed'),
    timeout: z.int().min(100).max(60_000).default(10_000).describe('maximum time of one read'),
  })
  .prefault({});
