import type { ChatRequest, ResponseFormat } from '../../model/chat.ts';
import { isObject, parseObject, type JsonObject } from '../../model/json.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { missing, wrongValue } from '../../sdk/errors.ts';
import { optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { innerObject, keepInner, own } from './wire.ts';
import { listOf, defined } from '../_shared/fields.ts';
import { setOf } from '../_shared/extra.ts';

const place = 'outputConfig.textFormat';
const schemaPlace = `${place}.structure.jsonSchema`;
const formatFields = setOf('type structure');
const schemaFields = setOf('schema name description');

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
    ...defined({ name, description }),
  };
}

/** Writes a schema where the format has it: as the text that the client wrote, where it did. */
function writeSchema(body: MutableObject, format: ResponseFormat, kept: JsonObject): void {
  const { name, description, schema } = format;
  innerObject(body, 'outputConfig').textFormat = {
    type: 'json_schema',
    structure: {
      jsonSchema: {
        schema: typeof kept.$schema === 'string' ? kept.$schema : JSON.stringify(schema),
        ...defined({ name, description }),
      },
    },
  };
}

/** The paths whose kept fields are members of objects written here. */
export const formatPlaces: readonly string[] = [schemaPlace, place];

const jsonInstruction = 'Answer with one valid JSON object and nothing else: no prose, no code fence.';
const answerTool = 'json_output';

/**
 * Asks for an answer in JSON: natively by schema, else by instruction, else by a forced tool whose name is returned, because its call
 * is then the answer.
 */
export function writeResponseFormat(
  { settings, extra }: ChatRequest,
  body: MutableObject,
  { traits, lose }: EncodeTarget,
): string | undefined {
  const { responseFormat: format } = settings;
  // Text is what comes anyway.
  if (format === undefined || format.type === 'text') return undefined;
  if (traits.refuses?.includes('responseFormat') === true) {
    lose('settings.responseFormat');
    return undefined;
  }
  if (format.type === 'json' || format.schema === undefined) {
    lose('settings.responseFormat');
    instruct(body, jsonInstruction);
    return undefined;
  }
  if (traits.jsonSchema !== false) {
    if (format.strict !== undefined) lose('settings.responseFormat.strict');
    writeSchema(body, format, own(extra));
    return undefined;
  }
  lose('settings.responseFormat');
  const object = format.schema.type === undefined || format.schema.type === 'object';
  const tools =
    isObject(body.toolConfig) && Array.isArray(body.toolConfig.tools) ? body.toolConfig.tools : [];
  // Beside other tools a forced one would keep the model from calling them.
  if (!object || tools.length > 0) {
    instruct(body, `Answer with nothing but JSON of this schema: ${JSON.stringify(format.schema)}`);
    return undefined;
  }
  return forceTool(body, format.schema, format.description);
}

/** Adds an instruction as a block of its own, so that the client's words stay what they are. */
function instruct(body: MutableObject, text: string): void {
  const before = listOf(body.system);
  body.system = [...before, { text }];
}

function forceTool(
  body: MutableObject,
  schema: JsonObject,
  description = 'The final answer is given by calling this tool.',
): string {
  const inputSchema = { json: { type: 'object', ...schema } };
  body.toolConfig = {
    tools: [{ toolSpec: { name: answerTool, description, inputSchema } }],
    toolChoice: { tool: { name: answerTool } },
  };
  return answerTool;
}
