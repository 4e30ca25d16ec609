/** Checks that responses are JSON that fits a JSON Schema (`kind: 'json-schema'`). */
import { z } from 'zod';
import type { JsonObject, JsonValue } from 'sluice';
import type { Judge } from './judge.ts';

/** Options of `kind: 'json-schema'`. */
export const jsonSchemaOptions = {
  /** JSON Schema of the text of each answer. Default: any JSON. */
  schema: z.record(z.string(), z.unknown()).default({}),
};

/** Returns a judge that flags texts which are not JSON or do not fit the schema. Throws for a schema that cannot be used. */
export function jsonSchema({ schema }: { readonly schema: Readonly<Record<string, unknown>> }): Judge {
  const shape = z.fromJSONSchema(schema as JsonObject);
  return async ({ texts }) => {
    const reasons = texts.flatMap(({ text }) => {
      let value: JsonValue;
      try {
        value = JSON.parse(text) as JsonValue;
      } catch {
        return ['not-json'];
      }
      return shape.safeParse(value).success ? [] : ['schema'];
    });
    return { flagged: reasons.length > 0, reasons: [...new Set(reasons)] };
  };
}
