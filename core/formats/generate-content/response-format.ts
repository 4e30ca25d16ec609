/** `responseMimeType`, `responseSchema` and `responseJsonSchema`, in both directions. */
import { wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalObject, optionalString } from '../_shared/check.ts';
import { fromSchemaSubset } from '../_shared/json-schema/from-subset.ts';
import { toSchemaSubset } from '../_shared/json-schema/to-subset.ts';
import { putAt } from '../_shared/settings.ts';

/** Decodes the response format. Undefined for a MIME type that no other format knows (`text/x.enum`). Throws 400 for a schema of plain text. */
export function readResponseFormat(body: JsonObject): ResponseFormat | undefined {
  const config = isObject(body.generationConfig) ? body.generationConfig : {};
  const mimeType = optionalString(config.responseMimeType, 'generationConfig.responseMimeType');
  const subset = optionalObject(config.responseSchema, 'generationConfig.responseSchema');
  const full = config.responseJsonSchema;
  if (given(full) && !isObject(full)) throw wrongType('generationConfig.responseJsonSchema', 'an object');
  if (mimeType !== undefined && mimeType !== 'application/json' && mimeType !== 'text/plain')
    return undefined;
  if (mimeType !== 'application/json' && (subset !== undefined || isObject(full))) {
    const name = subset === undefined ? 'responseJsonSchema' : 'responseSchema';
    throw wrongValue('generationConfig.responseMimeType', `application/json where there is a ${name}`);
  }
  if (isObject(full)) return { type: 'json-schema', schema: full };
  if (subset !== undefined) return { type: 'json-schema', schema: fromSchemaSubset(subset) };
  if (mimeType === undefined) return undefined;
  return { type: mimeType === 'application/json' ? 'json' : 'text' };
}

/** Returns true for models that accept JSON Schema. Those without thinking (2.0 and older) accept only the Schema subset. */
export function takesJsonSchema(traits: ModelTraits): boolean {
  return traits.reasoning !== 'none';
}

/** Encodes the response format of another format; dropped members are reported under `settings.responseFormat`. */
export function writeResponseFormat(
  body: MutableObject,
  format: ResponseFormat,
  traits: ModelTraits,
  drop: (path: string) => void,
): void {
  for (const member of ['name', 'description', 'strict'] as const) {
    if (format[member] !== undefined) drop(`settings.responseFormat.${member}`);
  }
  const mimeType = format.type === 'text' ? 'text/plain' : 'application/json';
  putAt(body, 'generationConfig.responseMimeType', mimeType);
  if (format.type !== 'json-schema' || format.schema === undefined) return;
  if (takesJsonSchema(traits)) {
    putAt(body, 'generationConfig.responseJsonSchema', format.schema);
    return;
  }
  const dropInSchema = (path: string): void => drop(`settings.responseFormat.schema.${path}`);
  const schema = toSchemaSubset(format.schema, { drop: dropInSchema });
  if (schema !== undefined) putAt(body, 'generationConfig.responseSchema', schema);
}
