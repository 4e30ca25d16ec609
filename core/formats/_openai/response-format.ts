import { missing, wrongValue } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { given, optionalBoolean, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import { setOf } from '../_shared/extra.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { defined } from '../_shared/fields.ts';

/** Members of a schema's object that the neutral model has words for. */
export const schemaFields = setOf('name description schema strict');

const readers = {
  name: optionalString,
  description: optionalString,
  schema: optionalObject,
  strict: optionalBoolean,
} as const;

/**
 * Reads a form of answers in neutral words. The members of a schema stand beside the `type`, or below `holder` where one is given. Throws
 * 400 with the path.
 */
export function responseFormatReader(holder?: string): (value: JsonValue, path: string) => MutableObject {
  return (value, path) => {
    const object = optionalObject(value, path) ?? {};
    const type = requiredString(object.type, `${path}.type`);
    if (type === 'text') return { type };
    if (type === 'json_object') return { type: 'json' };
    if (type !== 'json_schema') throw wrongValue(`${path}.type`, 'text, json_object or json_schema');
    const at = holder === undefined ? path : `${path}.${holder}`;
    const schema = holder === undefined ? object : optionalObject(object[holder], at);
    if (schema === undefined) throw missing(at);
    const read: MutableObject = { type: 'json-schema' };
    for (const [name, reader] of Object.entries(readers))
      if (given(schema[name])) read[name] = reader(schema[name], `${at}.${name}`);
    return read;
  };
}

/** The members of a neutral form with a schema, as the family spells them. `named`: the official API insists on a name, so one is given. */
export function schemaMembers(value: ResponseFormat, named: boolean): JsonObject {
  const { name, description, schema, strict } = value;
  return defined({ name: named ? legalName(name ?? 'response') : name, description, schema, strict });
}

function legalName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'response';
}

/** The tool that stands in for structured output. */
export const outputTool = 'json_output';

/** What it takes, for a model that has no structured output; undefined where other tools leave no room for it, or there is no schema. */
export function outputToolFor(
  format: ResponseFormat,
  body: JsonObject,
): { readonly name: string; readonly description: string; readonly parameters: JsonObject } | undefined {
  if (format.schema === undefined || body.tools !== undefined || body.tool_choice !== undefined)
    return undefined;
  const description = format.description ?? 'Gives the answer in the required form.';
  return { name: outputTool, description, parameters: format.schema };
}
