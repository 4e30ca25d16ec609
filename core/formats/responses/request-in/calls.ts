/** Reads tool calls and their outputs among the input items. */
import { missingValue } from '../../../sdk/errors.ts';
import type { Block, Message } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../../json/arguments.ts';
import {
  given,
  optionalString,
  requiredString,
  requiredObject,
  requiredArray,
  jsonText,
} from '../../_shared/check.ts';
import { clientToolOfCall } from '../tools/client.ts';
import { decodeContent } from './parts.ts';
import { neutralName } from '../tools/spelling.ts';
import { setOf } from '../../_shared/fields.ts';
import { readArguments } from '../../_openai/calls.ts';
import { leftovers } from '../wire.ts';

const callFields = setOf('type id call_id name arguments input status namespace');
const clientCallFields = setOf('type id call_id status action operation environment');
const outputFields = setOf('type id call_id name namespace output status');
const clientOutputFields = new Set([...outputFields, 'max_output_length']);
/** Fields of an item that only its own format has a use for. */
const formal = ['type', 'id', 'status', 'namespace'];

/** Returns the neutral call that an item makes; undefined when the item is no call that the client answers. Throws 400 with the path. */
export function decodeCall(item: JsonObject, type: string, at: string): Block | undefined {
  if (type === 'function_call' || type === 'custom_tool_call')
    return decodeNamedCall(item, type === 'custom_tool_call', at);
  const tool = clientToolOfCall(type);
  if (tool === undefined) return undefined;
  const payload = requiredObject(item[tool.payload], `${at}.${tool.payload}`);
  const left = leftovers().take(item, clientCallFields);
  left.mark('$item', item, [...formal, 'call_id', 'environment']);
  return {
    type: 'tool-call',
    id: idOf(item, at),
    name: tool.name,
    input: brokenArguments(payload) ?? jsonText(payload, `${at}.${tool.payload}`),
    at,
    ...left.extra(),
  };
}

function decodeNamedCall(item: JsonObject, custom: boolean, at: string): Block {
  const id = requiredString(item.call_id, `${at}.call_id`);
  const name = requiredString(item.name, `${at}.name`);
  const namespace = optionalString(item.namespace, `${at}.namespace`);
  const left = leftovers().take(item, callFields);
  left.mark('$item', item, namespace === undefined ? formal : [...formal, 'name']);
  return {
    type: 'tool-call',
    id,
    name: neutralName(name, namespace),
    input: custom
      ? requiredString(item.input, `${at}.input`)
      : readArguments(item.arguments, `${at}.arguments`),
    at,
    ...(custom ? { custom: true } : {}),
    ...left.extra(),
  };
}

/** Returns the id that pairs a call of a client-run tool with its output: some clients send the item's own id only. */
function idOf(item: JsonObject, at: string): string {
  const id = optionalString(item.call_id, `${at}.call_id`) ?? optionalString(item.id, `${at}.id`);
  if (id === undefined) throw missingValue(`${at}.call_id`);
  return id;
}

/** The text that a client-run tool gave, by the type of the item that brings it. */
const clientOutputs: ReadonlyMap<string, (output: JsonValue | undefined, path: string) => string> = new Map([
  ['local_shell_call_output', requiredString],
  // Returns the result of a command in the client's shell as JSON text: standard output, standard error and outcome.
  ['shell_call_output', (output, path) => jsonText(requiredArray(output, path), path)],
  ['apply_patch_call_output', (output, path) => optionalString(output, path) ?? ''],
]);

/** Returns the turn that brings a tool's result; undefined when the item is no such result, or names no call. Throws 400 with the path. */
export function decodeOutput(item: JsonObject, type: string, at: string): Message | undefined {
  if (type === 'function_call_output' || type === 'custom_tool_call_output')
    return given(item.call_id) ? namedOutput(item, type === 'custom_tool_call_output', at) : undefined;
  const read = clientOutputs.get(type);
  if (read === undefined) return undefined;
  const text = read(item.output, `${at}.output`);
  return clientOutput(item, text, at, type === 'apply_patch_call_output' && item.status === 'failed');
}

function namedOutput(item: JsonObject, custom: boolean, at: string): Message {
  const id = requiredString(item.call_id, `${at}.call_id`);
  optionalString(item.name, `${at}.name`);
  const { output } = item;
  if (!given(output)) throw missingValue(`${at}.output`);
  const left = leftovers()
    .take(item, outputFields)
    .mark('$item', item, [...formal, 'name']);
  const block: Block = {
    type: 'tool-result',
    id,
    ...decodeContent(output, `${at}.output`),
    at,
    ...(custom ? { custom: true } : {}),
    ...left.extra(),
  };
  return { role: 'tool', content: [block], at };
}

function clientOutput(item: JsonObject, text: string, at: string, failed: boolean): Message {
  const left = leftovers().take(item, clientOutputFields);
  left.mark('$item', item, [...formal, 'call_id', 'max_output_length', 'output']);
  const block: Block = {
    type: 'tool-result',
    id: idOf(item, at),
    content: text === '' ? [] : [{ type: 'text', text, at: `${at}.output` }],
    plain: true,
    at,
    ...(failed ? { failed } : {}),
    ...left.extra(),
  };
  return { role: 'tool', content: [block], at };
}
