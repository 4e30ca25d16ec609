/** Has a schema of options refuse misspelt names. */
import { z } from 'zod';

/** Returns the schema with unknown options as errors, also for a plain `z.object`, which would ignore them. */
export function strictOptions(schema: z.ZodType | undefined): z.ZodType {
  if (schema === undefined) return z.strictObject({});
  return schema instanceof z.ZodObject && schema.def.catchall === undefined ? schema.strict() : schema;
}
