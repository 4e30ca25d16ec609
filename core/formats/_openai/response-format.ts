/**
 * Structured output in OpenAI's formats: reads `json_schema`, `json_object` and `text`, and writes them, or a forced tool or an instruction
 * where the model has no structured output.
 */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import type { JsonObject, JsonValue, MutableObject } from '../../model/json.ts';
import { given, optionalBoolean, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import { defined, setOf } from '../_shared/fields.ts';
import { adaptSchema } from '../_shared/json-schema/adapt.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { EncodeTarget } from '../../sdk/format.ts';

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
    if (schema === undefined) throw missingValue(at);
    const read: MutableObject = { type: 'json-schema' };
    for (const [name, reader] of Object.entries(readers))
      if (given(schema[name])) read[name] = reader(schema[name], `${at}.${name}`);
    return read;
  };
}

/** Members and instructions that request structured output in a format. */
interface FormWords {
  readonly attach: (format: JsonObject) => void;
  /** The official API insists on a name, so one is given where the client had none. */
  readonly named: boolean;
  /** Member that holds the schema's members. Absent: they stand beside `type`. */
  readonly holder?: string;
  readonly tool: (tool: JsonObject) => JsonObject;
  readonly choice: (name: string) => JsonObject;
  /** Adds an instruction behind those of the client. */
  readonly instruct: (text: string) => void;
}

/**
 * Encodes the request for structured output. For a model without structured output, adds a forced tool and returns its name. If the request
 * has tools or no schema, requests only JSON. A model that refuses forced tools gets an instruction to call the tool; a model without tools
 * gets the schema as an instruction.
 */
export function writeAnswerForm(
  format: ResponseFormat | undefined,
  body: MutableObject,
  { traits, drop }: EncodeTarget,
  words: FormWords,
): string | undefined {
  if (format === undefined) return undefined;
  if (format.type !== 'json-schema') {
    if (format.type === 'json') attachJsonObject(traits, drop, words);
    else words.attach({ type: 'text' });
    return undefined;
  }
  if (traits.jsonSchema !== false) {
    const dropInSchema = (path: string): void => drop(`settings.responseFormat.schema.${path}`);
    const strict = format.strict === true && format.schema !== undefined;
    const schema = strict
      ? adaptSchema(format.schema, traits.schemaSubset, { drop: dropInSchema })
      : format.schema;
    const members = schemaMembers({ ...format, ...defined({ schema }) }, words.named);
    if (format.name !== undefined && members.name !== format.name) drop('settings.responseFormat.name');
    const { holder } = words;
    words.attach({ type: 'json_schema', ...(holder === undefined ? members : { [holder]: members }) });
    return undefined;
  }
  const { schema } = format;
  if (traits.tools === false) {
    drop('settings.responseFormat');
    words.instruct(
      schema === undefined
        ? `${jsonOnly}.`
        : `${jsonOnly}. It fits this JSON Schema: ${JSON.stringify(schema)}`,
    );
    return undefined;
  }
  if (schema === undefined || body.tools !== undefined || body.tool_choice !== undefined) {
    drop('settings.responseFormat');
    attachJsonObject(traits, () => {}, words);
    return undefined;
  }
  const description = format.description ?? 'Gives the answer in the required form.';
  body.tools = [words.tool({ name: outputTool, description, parameters: schema })];
  if (traits.forcedTools !== 'never')
    body.tool_choice = traits.namedTools === false ? 'required' : words.choice(outputTool);
  else {
    drop('settings.responseFormat');
    words.instruct(`Give your final answer by calling the tool ${outputTool}.`);
  }
  return outputTool;
}

/** Instruction for models that no member of the request makes answer in JSON. */
const jsonOnly = 'Answer with a JSON object alone, without words around it';

/** Requests JSON without a schema. */
function attachJsonObject(
  { jsonObject, jsonSchema }: ModelTraits,
  drop: EncodeTarget['drop'],
  words: FormWords,
): void {
  const { attach, holder } = words;
  if (jsonObject !== false) return attach({ type: 'json_object' });
  if (jsonSchema === false) {
    drop('settings.responseFormat');
    return words.instruct(`${jsonOnly}.`);
  }
  const members = { name: 'response', schema: { type: 'object' } };
  attach({ type: 'json_schema', ...(holder === undefined ? members : { [holder]: members }) });
}

function schemaMembers({ name, description, schema, strict }: ResponseFormat, named: boolean): JsonObject {
  return defined({ name: named ? legalName(name ?? 'response') : name, description, schema, strict });
}

function legalName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'response';
}

/** The tool that stands in for structured output. */
const outputTool = 'json_output';
