/** Schema of the setting for changes that administrators make while the gateway runs. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';

/** Run-time configuration: entries that administrators store in the database, beside those of the file. */
export const runtimeConfigSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('false: ignores run-time entries, and refuses changes of them'),
    env: z
      .array(z.string().regex(/^\w+$/, 'must be the name of an environment variable'))
      .max(1_000)
      .default([])
      .describe('names of environment variables to which run-time entries may refer'),
    files: z
      .array(z.string().refine(isAbsolute, 'must be an absolute path'))
      .max(1_000)
      .default([])
      .describe('absolute paths of files to which run-time entries may refer'),
    secrets: z
      .array(
        z
          .string()
          .max(1_024)
          .regex(/^[a-z][a-z0-9-]*:./, 'must begin with a source and a colon, as "vault:llm/*" does'),
      )
      .max(1_000)
      .default([])
      .describe('references to which run-time entries may refer, with * for any text: `vault:llm/*`'),
  })
  .prefault({});
