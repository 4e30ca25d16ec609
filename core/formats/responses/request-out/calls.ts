/** Encodes tool calls, their outputs and reasoning as `input` items of a Responses request. */
import type { Block, ReasoningBlock, ToolCallBlock, ToolResultBlock } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { argumentsObject } from '../../../json/arguments.ts';
import { clientToolOfCall } from '../tools/client.ts';
import { writeContent } from './parts.ts';
import { toolsAsWritten } from './tools.ts';
import { neutralName } from '../tools/spelling.ts';
import { formatName, kept, own } from '../wire.ts';
import { finishPiece, idOf, dropField, type Scope } from '../../_openai/scope.ts';
import { markFailed, labelledOutput, writeArguments } from '../../_openai/calls.ts';

/** Output for a call that has no result in the history, because every call must have one. */
const noOutput = '(no output)';

/** Encodes a call as an item. */
export function writeCall(block: ToolCallBlock, scope: Scope): JsonObject {
  if (block.cache !== undefined) dropField(block, 'cache', scope);
  if (block.proof !== undefined) dropField(block, 'proof', scope);
  const held = kept(block.extra, '$item') ?? {};
  const tool = typeof held.type === 'string' ? clientToolOfCall(held.type) : undefined;
  if (tool !== undefined) {
    const payload = argumentsObject(block.input);
    return finishPiece({ ...withId(held, block.id), [tool.payload]: payload }, block, scope);
  }
  const custom = block.custom === true && !scope.wrapped.has(block.name);
  const { type: _, name: __, namespace: ___, ...rest } = held;
  const wire: MutableObject = {
    ...rest,
    type: custom ? 'custom_tool_call' : 'function_call',
    call_id: idOf(block, scope),
    ...nameOf(block, held, scope),
  };
  if (custom) wire.input = block.input;
  else wire.arguments = writeArguments(block, scope.foreign);
  return finishPiece(wire, block, scope);
}

/** Adds the call id, except where the client paired a call and its output by the item's id alone. */
function withId(held: JsonObject, id: string): MutableObject {
  return held.call_id === undefined && held.id === undefined ? { ...held, call_id: id } : { ...held };
}

/** Returns the client's own name and namespace where they still match the block's name, else the block's name. */
function nameOf(block: ToolCallBlock, held: JsonObject, scope: Scope): JsonObject {
  const { name, namespace } = held;
  const spelled = scope.names?.there(block.name) ?? block.name;
  if (typeof name !== 'string' || typeof namespace !== 'string' || !toolsAsWritten(scope))
    return { name: spelled };
  return neutralName(name, namespace) === block.name ? { name, namespace } : { name: spelled };
}

/** Encodes a result as an item. */
export function writeOutput(block: ToolResultBlock, scope: Scope): JsonObject {
  if (block.cache !== undefined) dropField(block, 'cache', scope);
  const held = kept(block.extra, '$item') ?? {};
  switch (held.type) {
    case 'local_shell_call_output':
      return finishPiece({ ...withId(held, block.id), output: textOf(block.content) }, block, scope);
    case 'shell_call_output':
      return finishPiece({ ...withId(held, block.id), output: shellOutput(block, held) }, block, scope);
    case 'apply_patch_call_output':
      return finishPiece(patchOutput(block, held), block, scope);
    default:
      return namedOutput(block, held, scope);
  }
}

function namedOutput(block: ToolResultBlock, held: JsonObject, scope: Scope): JsonObject {
  const custom = block.custom === true && scope.wrapped.size === 0;
  const wire: MutableObject = {
    ...held,
    type: custom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: idOf(block, scope),
  };
  const content = writeContent(block.content, block.plain, scope, 'tool');
  wire.output = block.failed === true ? markFailed(content, 'input_text') : content;
  if (Array.isArray(wire.output) && wire.output.length === 0 && scope.foreign) wire.output = '';
  if (block.failed === true) dropField(block, 'failed', scope);
  return finishPiece(wire, block, scope);
}

/** Returns the client's output unless the text was changed. */
function shellOutput(block: ToolResultBlock, held: JsonObject): JsonValue {
  const text = textOf(block.content);
  if (held.output !== undefined && JSON.stringify(held.output) === text) return held.output;
  return [{ stdout: text, stderr: '', outcome: { type: 'exit', exit_code: 0 } }];
}

function patchOutput(block: ToolResultBlock, held: JsonObject): MutableObject {
  const wire = withId(held, block.id);
  const text = textOf(block.content);
  if (text !== '' || held.output !== undefined) wire.output = text;
  if (block.failed !== true && held.status === 'failed') wire.status = 'completed';
  return wire;
}

function textOf(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/**
 * Encodes the reasoning of an earlier answer as an item; undefined where it is left out. A provider accepts only its own reasoning: with its own
 * proof, or as a client of this format sent it. Plain text of others is sent to models that expect it beside their calls (`replaysReasoning`).
 */
export function writeReasoningItem(block: ReasoningBlock, scope: Scope): JsonObject | undefined {
  const { proof } = block;
  const { $item, $sealed, $text } = own(block.extra);
  if (isObject($item) && $sealed !== true) {
    const item = block.text === $text ? $item : withText($item, block.text);
    return finishPiece({ type: 'reasoning', ...item }, block, scope);
  }
  if (proof?.format === formatName) {
    const summary = block.text === '' ? [] : [{ type: 'summary_text', text: block.text }];
    return finishPiece(
      { ...(isObject($item) ? $item : {}), type: 'reasoning', summary, encrypted_content: proof.value },
      block,
      scope,
    );
  }
  if (scope.target.traits.replaysReasoning === true && block.text !== '') {
    if (proof !== undefined) dropField(block, 'proof', scope);
    const content = [{ type: 'reasoning_text', text: block.text }];
    return finishPiece({ type: 'reasoning', summary: [], content }, block, scope);
  }
  scope.target.drop(block.at ?? 'messages');
  return undefined;
}

function withText(item: JsonObject, text: string): JsonObject {
  const { content, ...rest } = item;
  if (Array.isArray(content) && content.length > 0)
    return { ...rest, content: [{ type: 'reasoning_text', text }] };
  return { ...rest, summary: [{ type: 'summary_text', text }] };
}

/** Adds an output to every call without one, and turns outputs without a call into user messages, because providers refuse both. */
export function withoutOrphans(items: readonly JsonObject[]): JsonObject[] {
  const answered = new Set(items.filter(isOutput).map(({ call_id: id }) => id));
  const called = new Set<JsonValue | undefined>();
  const out: JsonObject[] = [];
  for (const item of items) {
    if (isOutput(item)) {
      out.push(called.has(item.call_id) ? item : asUserMessage(item));
      continue;
    }
    out.push(item);
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') continue;
    called.add(item.call_id);
    if (!answered.has(item.call_id))
      out.push({ type: `${item.type}_output`, call_id: item.call_id, output: noOutput });
  }
  return out;
}

function isOutput(item: JsonObject): boolean {
  return item.type === 'function_call_output' || item.type === 'custom_tool_call_output';
}

function asUserMessage({ call_id: id, output }: JsonObject): JsonObject {
  const content = labelledOutput(id, output, 'input_text');
  return { type: 'message', role: 'user', content };
}
