import type { ResponseFormat } from '../../model/chat.ts';
import { parseObject, type JsonObject } from '../../model/json.ts';
import { missing, wrongValue } from '../../sdk/errors.ts';
import { optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { innerObject, keepInner } from './wire.ts';

const place = 'outputConfig.textFormat';
const schemaPlace = `${place}.structure.jsonSchema`;
const formatFields: ReadonlySet<string> = new Set(['type', 'structure']);
const schemaFields: ReadonlySet<string> = new Set(['schema', 'name', 'description']);

/** The answer's form from `outputConfig.textFormat`, whose schema is a text; what only this format knows goes to `rest`. */
export function decodeFormat(body: JsonObject, rest: MutableObject): ResponseFormat | undefined {
  const wire = optionalObject(optionalObject(body.outputConfig, 'outputConfig')?.textFormat, place);
  if (wire === undefined) return undefined;
  const structure = optionalObject(wire.structure, `${place}.structure`);
  const definition = optionalObject(structure?.jsonSchema, schemaPlace);
  if (wire.type !== 'json_schema') {
    rest[place] = wire;
    return undefined;
  }
  if (definition === undefined) throw missing(schemaPlace);
  const text = requiredString(definition.schema, `${schemaPlace}.schema`);
  const schema = parseObject(text);
  if (schema === undefined) throw wrongValue(`${schemaPlace}.schema`, 'a JSON schema, written as text');
  keepInner(rest, place, wire, formatFields);
  keepInner(rest, schemaPlace, definition, schemaFields);
  if (JSON.stringify(schema) !== text) rest.$schema = text;
  const name = optionalString(definition.name, `${schemaPlace}.name`);
  const description = optionalString(definition.description, `${schemaPlace}.description`);
  return {
    type: 'json-schema',
    schema,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
  };
}

/** Writes a schema where the format has it: as the text that the client wrote, where it did. */
export function writeSchema(body: MutableObject, format: ResponseFormat, kept: JsonObject): void {
  const { name, description, schema } = format;
  innerObject(body, 'outputConfig').textFormat = {
    type: 'json_schema',
    structure: {
      jsonSchema: {
        schema: typeof kept.$schema === 'string' ? kept.$schema : JSON.stringify(schema),
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description }),
      },
    },
  };
}

/** The paths whose kept fields are members of objects written here. */
export const formatPlaces: readonly string[] = [schemaPlace, place];
