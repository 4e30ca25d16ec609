import type { ChatRequest } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { writeSchema } from '../response-format.ts';
import { own } from '../wire.ts';
import type { Writing } from './scope.ts';

const jsonInstruction = 'Answer with one valid JSON object and nothing else: no prose, no code fence.';
const answerTool = 'json_output';

/**
 * Asks for an answer in JSON: natively by schema, else by instruction, else by a forced tool whose name is returned, because its call
 * is then the answer.
 */
export function writeResponseFormat(
  { settings, extra }: ChatRequest,
  body: MutableObject,
  { target }: Writing,
): string | undefined {
  const { traits, lose } = target;
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
  const before: readonly JsonValue[] = Array.isArray(body.system) ? body.system : [];
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
