/** Schema of the settings of secrets that the config names by reference. */
import { z } from 'zod';

/** How secrets are read that the config names by reference. */
export const secretsSchema = z
  .strictObject({
    refresh: z
      .int()
      .min(1_000)
      .max(86_400_000)
      .default(300_000)
      .describe('time after which secrets are read again; where one has changed, the gateway reloads'),
    timeout: z.int().min(100).max(60_000).default(10_000).describe('longest time that one read may take'),
  })
  .prefault({});
