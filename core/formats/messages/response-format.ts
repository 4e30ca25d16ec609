/** `output_config.format`, in both directions. */
import type { ChatRequest, ResponseFormat } from '../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { answerTool, encodeAnswerForm } from '../_shared/answer-form.ts';
import { given, optionalObject, requiredObject } from '../_shared/check.ts';
import { thinks } from '../_shared/thinking/room.ts';
import type { Writing } from './request-out/scope.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { listOf, setOf } from '../_shared/fields.ts';
import { own } from './wire.ts';

const formatFields = setOf('type schema');
const formatPath = 'output_config.format';
/** Path of the same object in the beta of this feature. */
const betaPath = 'output_format';

/** Returns the answer's form from `output_config.format` (or its old place); fields that only this format has go to `left`. */
export function decodeFormat(body: JsonObject, left: Leftovers): ResponseFormat | undefined {
  const current = optionalObject(body.output_config, 'output_config')?.format;
  const old = !given(current) && given(body[betaPath]);
  if (given(current) && given(body[betaPath])) left.put(betaPath, body[betaPath]);
  const path = old ? betaPath : formatPath;
  const wire = optionalObject(old ? body[betaPath] : current, path);
  if (wire === undefined) return undefined;
  if (wire.type !== 'json_schema') {
    left.put(path, wire);
    return undefined;
  }
  const schema = requiredObject(wire.schema, `${path}.schema`);
  left.take(wire, formatFields, `${path}.`);
  if (old) left.put('$format', betaPath);
  return { type: 'json-schema', schema };
}

/** Asks for an answer in JSON. Returns the name of the tool that stands in for it, where one does. */
export function writeResponseFormat(
  request: ChatRequest,
  body: MutableObject,
  { target }: Writing,
): string | undefined {
  return encodeAnswerForm(request, target, {
    lacks: ['name', 'description', 'strict'],
    // Same field as in the client's request, otherwise the official one.
    schema(schema) {
      const format: JsonObject = { type: 'json_schema', schema };
      if (own(request.extra).$format === betaPath) body[betaPath] = format;
      else body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format };
    },
    instruct: (text) => addInstruction(body, text),
    force: (schema, description) => forceTool(body, schema, description, target.traits),
  });
}

function addInstruction(body: MutableObject, text: string): void {
  const { system } = body;
  const before = typeof system === 'string' ? [{ type: 'text', text: system }] : listOf(system);
  body.system = before.length === 0 ? text : [...before, { type: 'text', text }];
}

function forceTool(
  body: MutableObject,
  schema: JsonObject,
  description: string,
  { forcedTools }: ModelTraits,
): string {
  const tools = listOf(body.tools);
  let name = answerTool;
  while (tools.some((tool) => isObject(tool) && tool.name === name)) name += '_';
  body.tools = [...tools, { name, description, input_schema: schema }];
  const choice = isObject(body.tool_choice) ? body.tool_choice : {};
  if (thinks(body.thinking) || forcedTools === 'never') {
    body.tool_choice = { ...choice, type: 'auto' };
    addInstruction(body, `Give your final answer by calling the tool ${name}.`);
  } else if (tools.length === 0 || choice.type === 'none') {
    body.tool_choice = { ...choice, type: 'tool', name };
  } else if (choice.type !== 'tool') {
    body.tool_choice = { ...choice, type: 'any' };
  }
  return name;
}
