/** Has a schema of options refuse misspelt names. */
import { z } from 'zod';

/** A misspelt option is an error, also where the author wrote a plain `z.object`, which would pass it over. */
export function strictOptions(schema: z.ZodType | undefined): z.ZodType {
  if (schema === undefined) return z.strictObject({});
  return schema instanceof z.ZodObject && schema.def.catchall === undefined ? schema.strict() : schema;
}
