import type { ChatRequest, ResponseFormat } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalObject, requiredObject } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { thinks } from './reasoning.ts';
import type { Writing } from './request-out/scope.ts';
import { setOf, type Leftovers } from '../_shared/extra.ts';
import { listOf } from '../_shared/fields.ts';
import { own } from './wire.ts';

const formatFields = setOf('type schema');
const place = 'output_config.format';
/** The beta's old place of the same object. */
const oldPlace = 'output_format';

/** The answer's form from `output_config.format` (or its old place); what only this format knows goes to `left`. */
export function decodeFormat(body: JsonObject, left: Leftovers): ResponseFormat | undefined {
  const current = optionalObject(body.output_config, 'output_config')?.format;
  const old = !given(current) && given(body[oldPlace]);
  if (given(current) && given(body[oldPlace])) left.put(oldPlace, body[oldPlace]);
  const path = old ? oldPlace : place;
  const wire = optionalObject(old ? body[oldPlace] : current, path);
  if (wire === undefined) return undefined;
  if (wire.type !== 'json_schema') {
    left.put(path, wire);
    return undefined;
  }
  const schema = requiredObject(wire.schema, `${path}.schema`);
  left.take(wire, formatFields, `${path}.`);
  if (old) left.put('$format', oldPlace);
  return { type: 'json-schema', schema };
}

/** Writes a schema where the client had it, or in the official place. */
export function writeSchema(body: MutableObject, schema: JsonObject, kept: JsonObject): void {
  const wire: JsonObject = { type: 'json_schema', schema };
  if (kept.$format === oldPlace) body[oldPlace] = wire;
  else body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: wire };
}

const jsonInstruction = 'Answer with one valid JSON object and nothing else: no prose, no code fence.';
const answerTool = 'json_output';

/**
 * Asks for an answer in JSON: natively by schema, else by instruction, else by a forced tool whose name is returned, because its call
 * is then the answer.
 */
export function writeResponseFormat(
  request: ChatRequest,
  body: MutableObject,
  writing: Writing,
): string | undefined {
  const format = request.settings.responseFormat;
  // Text is what comes anyway.
  if (format === undefined || format.type === 'text') return undefined;
  const { traits, lose } = writing.target;
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
    for (const member of ['name', 'description', 'strict'] as const) {
      if (format[member] !== undefined) lose(`settings.responseFormat.${member}`);
    }
    writeSchema(body, format.schema, own(request.extra));
    return undefined;
  }
  lose('settings.responseFormat');
  if (format.schema.type === undefined || format.schema.type === 'object')
    return forceTool(body, format, format.schema);
  instruct(body, `Answer with nothing but JSON of this schema: ${JSON.stringify(format.schema)}`);
  return undefined;
}

/** Adds an instruction as a block of its own, so that the client's words stay what they are. */
function instruct(body: MutableObject, text: string): void {
  const { system } = body;
  const before: readonly JsonValue[] =
    typeof system === 'string' ? [{ type: 'text', text: system }] : Array.isArray(system) ? system : [];
  body.system = before.length === 0 ? text : [...before, { type: 'text', text }];
}

function forceTool(body: MutableObject, format: ResponseFormat, schema: JsonObject): string {
  const tools = listOf(body.tools);
  let name = answerTool;
  while (tools.some((tool) => isObject(tool) && tool.name === name)) name += '_';
  const description = format.description ?? 'The final answer is given by calling this tool.';
  body.tools = [...tools, { name, description, input_schema: { type: 'object', ...schema } }];
  const choice = isObject(body.tool_choice) ? body.tool_choice : {};
  if (thinks(body)) {
    body.tool_choice = { ...choice, type: 'auto' };
    instruct(body, `Give your final answer by calling the tool ${name}.`);
  } else if (tools.length === 0 || choice.type === 'none') {
    body.tool_choice = { ...choice, type: 'tool', name };
  } else if (choice.type !== 'tool') {
    body.tool_choice = { ...choice, type: 'any' };
  }
  return name;
}
