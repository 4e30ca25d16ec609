import { missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import {
  checkMetadata,
  given,
  invalid,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
} from '../_shared/check.ts';
import { decodeRequest } from './request-in/index.ts';
import { listOf, setOf } from '../_shared/fields.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Throws 400 with the path for anything that the spec and the official format forbid, and for a wrong type of a field that the gateway reads. */
export function validate(body: JsonObject, operation: ChatRequest['operation'] = 'chat'): ChatRequest {
  if (given(body.prompt))
    throw invalid('prompt', 'Prompt templates are not supported. Send the input itself.');
  const request = decodeRequest(body, operation);
  checkState(body);
  checkMetadata(body.metadata);
  optionalNumber(body.max_tool_calls, 'max_tool_calls', { integer: true, min: 1 });
  checkInclude(body.include);
  const items = listOf(body.input);
  checkTrigger(items);
  if (!given(body.previous_response_id) && !given(body.conversation)) {
    if (isNothing(body.input) && body.generate !== false) throw missingValue('input');
    checkOutputs(items);
  }
  return request;
}

function isNothing(input: JsonValue | undefined): boolean {
  return !given(input) || (Array.isArray(input) && input.length === 0);
}

function checkState(body: JsonObject): void {
  const store = optionalBoolean(body.store, 'store');
  optionalBoolean(body.generate, 'generate');
  if (optionalBoolean(body.background, 'background') === true && store === false)
    throw invalid('background', 'background requires store to be true.');
  checkBackgroundOptions(body);
  optionalString(body.previous_response_id, 'previous_response_id');
  const { conversation } = body;
  if (!given(conversation)) return;
  if (isObject(conversation)) {
    if (typeof conversation.id !== 'string') throw wrongType('conversation.id', 'a string');
  } else if (typeof conversation !== 'string') throw wrongType('conversation', 'a string or an object');
  if (given(body.previous_response_id))
    throw invalid('conversation', 'previous_response_id and conversation are mutually exclusive.');
}

/** Checks the rules of openai 7.59.0, `ResponseCreateParams.BackgroundOptions`. */
function checkBackgroundOptions(body: JsonObject): void {
  const options = optionalObject(body.background_options, 'background_options');
  const name = 'background_options.completion_window';
  const window = optionalString(options?.completion_window, name);
  optionalString(options?.continuation_id, 'background_options.continuation_id');
  if (window === undefined || window === 'soonest') return;
  if (body.background !== true) throw invalid(name, `${name} "${window}" requires background to be true.`);
  if (body.stream === true) throw invalid(name, `${name} "${window}" requires stream to be false.`);
}

function checkInclude(value: JsonValue | undefined): void {
  if (!Array.isArray(value)) return;
  value.forEach((word: JsonValue, index) => {
    if (typeof word !== 'string') throw wrongType(`include[${index}]`, 'a string');
  });
}

function checkTrigger(items: readonly JsonValue[]): void {
  const index = items.findIndex((item) => isObject(item) && item.type === 'compaction_trigger');
  if (index >= 0 && index < items.length - 1)
    throw wrongValue(`input[${index}]`, 'the last item, because it asks for the compaction of all before it');
}

const outputs = lookupTable<string>({
  function_call_output: 'function call output',
  custom_tool_call_output: 'custom tool call output',
  local_shell_call_output: 'local shell call output',
  shell_call_output: 'shell call output',
  apply_patch_call_output: 'patch output',
});

/** Items that stand for other items, which the gateway does not have. */
const standIns = setOf('compaction item_reference');

/** Throws 400 for an output without its call, unless an item of the input stands for items that are kept elsewhere. */
function checkOutputs(items: readonly JsonValue[]): void {
  const called = new Set<JsonValue | undefined>();
  for (const item of items) {
    if (!isObject(item)) continue;
    const { type } = item;
    if (standIns.has(String(type)) || (!given(type) && !given(item.role))) return;
    if (typeof type === 'string' && type.endsWith('_call')) called.add(item.call_id).add(item.id);
  }
  items.forEach((item, index) => {
    if (!isObject(item) || typeof item.type !== 'string') return;
    const what = outputs[item.type];
    const id = item.call_id ?? (item.type.startsWith('local_') ? item.id : undefined);
    if (what === undefined || !given(id) || called.has(id)) return;
    const param = `input[${index}].call_id`;
    throw invalid(param, `${param}: no tool call found for ${what} with call_id ${String(id)}.`);
  });
}
