import type { ChatRequest, ResponseFormat } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { writeSchema } from '../response-format.ts';
import { thinks } from '../reasoning/request-out.ts';
import { own } from '../wire.ts';
import type { Writing } from './scope.ts';

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
  const tools: readonly JsonValue[] = Array.isArray(body.tools) ? body.tools : [];
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
