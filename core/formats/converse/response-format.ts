/** `outputConfig.textFormat`, in both directions. */
import type { ChatRequest, ResponseFormat } from '../../model/chat.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import { answerTool, encodeAnswerForm } from '../_shared/answer-form.ts';
import { optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import { putAt } from '../_shared/settings.ts';
import { own } from './wire.ts';
import { listOf, defined, setOf } from '../_shared/fields.ts';
import type { Leftovers } from '../_shared/extra.ts';

const formatPath = 'outputConfig.textFormat';
const schemaPath = `${formatPath}.structure.jsonSchema`;
const formatFields = setOf('type structure');
const schemaFields = setOf('schema name description');

/** Returns the answer's form from `outputConfig.textFormat`, whose schema is a text; fields that only this format has go to `left`. */
export function decodeFormat(body: JsonObject, left: Leftovers): ResponseFormat | undefined {
  const wire = optionalObject(optionalObject(body.outputConfig, 'outputConfig')?.textFormat, formatPath);
  if (wire === undefined) return undefined;
  const structure = optionalObject(wire.structure, `${formatPath}.structure`);
  const definition = optionalObject(structure?.jsonSchema, schemaPath);
  if (wire.type !== 'json_schema') {
    left.put(formatPath, wire);
    return undefined;
  }
  if (definition === undefined) throw missingValue(schemaPath);
  const text = requiredString(definition.schema, `${schemaPath}.schema`);
  const schema = parseObject(text);
  if (schema === undefined) throw wrongValue(`${schemaPath}.schema`, 'a JSON schema, written as text');
  left.take(wire, formatFields, `${formatPath}.`).take(definition, schemaFields, `${schemaPath}.`);
  if (JSON.stringify(schema) !== text) left.put('$schema', text);
  const name = optionalString(definition.name, `${schemaPath}.name`);
  const description = optionalString(definition.description, `${schemaPath}.description`);
  return {
    type: 'json-schema',
    schema,
    ...defined({ name, description }),
  };
}

/** The paths whose kept fields are members of objects written here. */
export const formatPlaces: readonly string[] = [schemaPath, formatPath];

/** Asks for an answer in JSON. Returns the name of the tool that stands in for it, where one does. */
export function writeResponseFormat(
  request: ChatRequest,
  body: MutableObject,
  target: EncodeTarget,
): string | undefined {
  const { name, description } = request.settings.responseFormat ?? {};
  const { $schema } = own(request.extra);
  return encodeAnswerForm(request, target, {
    lacks: ['strict'],
    // As the text that the client wrote, where it did.
    schema(value) {
      const isOwn = value === request.settings.responseFormat?.schema;
      const schema = isOwn && typeof $schema === 'string' ? $schema : JSON.stringify(value);
      const jsonSchema = { schema, ...defined({ name, description }) };
      putAt(body, formatPath, { type: 'json_schema', structure: { jsonSchema } });
    },
    instruct(text) {
      body.system = [...listOf(body.system), { text }];
    },
    // With other tools a forced tool would prevent the model from calling them.
    force(json, instruction) {
      if (target.traits.forcedTools === 'never') return undefined;
      if (isObject(body.toolConfig) && listOf(body.toolConfig.tools).length > 0) return undefined;
      body.toolConfig = {
        tools: [{ toolSpec: { name: answerTool, description: instruction, inputSchema: { json } } }],
        toolChoice: target.traits.namedTools === false ? { any: {} } : { tool: { name: answerTool } },
      };
      return answerTool;
    },
  });
}
