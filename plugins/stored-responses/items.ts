/** Items of the Responses API: the ids and status that stored items get, references to stored items, and validation. */
import { randomBytes } from 'node:crypto';
import { isObject, wrongType, wrongValue, missingValue, type JsonObject, type JsonValue } from 'sluice';
import { lookupTable } from 'sluice/channel-kit';

/** Prefixes of ids by the type of the item, which providers of this format validate. */
const prefixes = lookupTable<string>({
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  compaction: 'cmp',
  web_search_call: 'ws',
  file_search_call: 'fs',
  code_interpreter_call: 'ci',
  image_generation_call: 'ig',
  computer_call: 'cu',
  computer_call_output: 'cuo',
  local_shell_call: 'lsh',
  local_shell_call_output: 'lsho',
  shell_call: 'sh',
  shell_call_output: 'sho',
  apply_patch_call: 'apc',
  apply_patch_call_output: 'apco',
  mcp_list_tools: 'mcpl',
  mcp_call: 'mcp',
  mcp_approval_request: 'mcpr',
  mcp_approval_response: 'mcpa',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
});

/** Types of items that have a `status`. */
const withStatus = /^(message|.*_call|.*_call_output|tool_search_output)$/;

/** Returns an unguessable id: the prefix, an underscore and 48 hexadecimal digits. */
export function randomId(prefix: string): string {
  return `${prefix}_${randomBytes(24).toString('hex')}`;
}

/**
 * Returns items as the gateway stores and shows them: each with a type, an id and, where its type has one, a status. String content of a message
 * becomes one part. Members that the client sent stay. Items must be valid for the format, or checked by {@link readItems}.
 */
export function withIds(items: readonly JsonObject[]): readonly JsonObject[] {
  return items.map((item) => {
    const type = typeof item['type'] === 'string' ? item['type'] : 'message';
    const { id, status, content, ...rest } = item;
    return {
      ...rest,
      type,
      id: typeof id === 'string' && id !== '' ? id : randomId(prefixes[type] ?? 'item'),
      ...(typeof status === 'string' ? { status } : withStatus.test(type) ? { status: 'completed' } : {}),
      ...(content === undefined
        ? {}
        : { content: type === 'message' ? parts(content, item['role']) : content }),
    };
  });
}

function parts(content: JsonValue, role: JsonValue | undefined): JsonValue {
  if (typeof content !== 'string') return content;
  return role === 'assistant'
    ? [{ type: 'output_text', text: content, annotations: [], logprobs: [] }]
    : [{ type: 'input_text', text: content }];
}

/** Returns the id that an item refers to, where it is a reference to a stored item. Its type may be absent. */
export function referenceIn(item: JsonObject): string | undefined {
  const { type, id, role } = item;
  const refers =
    type === 'item_reference' || ((type ?? undefined) === undefined && (role ?? undefined) === undefined);
  return refers && typeof id === 'string' ? id : undefined;
}

/** Maximum number of items that one request may add to a conversation. */
const MOST_ITEMS = 20;
const roles = new Set(['user', 'assistant', 'system', 'developer']);

/** Reads the `items` of a conversation request. Throws 400 where they are invalid. */
export function readItems(value: JsonValue | undefined): readonly JsonObject[] {
  if (!Array.isArray(value)) throw wrongType('items', 'an array');
  if (value.length > MOST_ITEMS) throw wrongValue('items', `at most ${MOST_ITEMS} items`);
  return value.map((item: JsonValue, index) => readItem(item, `items[${index}]`));
}

function readItem(item: JsonValue, path: string): JsonObject {
  if (!isObject(item)) throw wrongType(path, 'an object');
  const { type, id, role, content } = item;
  for (const [name, text] of Object.entries({ type, id })) {
    if (text !== undefined && text !== null && typeof text !== 'string')
      throw wrongType(`${path}.${name}`, 'a string');
  }
  if (type === 'item_reference' && typeof id !== 'string') throw missingValue(`${path}.id`);
  if (referenceIn(item) !== undefined || (typeof type === 'string' && type !== 'message')) return item;
  if (role === undefined) throw missingValue(`${path}.role`);
  if (typeof role !== 'string' || !roles.has(role))
    throw wrongValue(`${path}.role`, [...roles].join(', ').replace(/, (\w+)$/, ' or $1'));
  if (content === undefined) throw missingValue(`${path}.content`);
  const isParts = Array.isArray(content) && content.every(isObject);
  if (typeof content !== 'string' && !isParts)
    throw wrongType(`${path}.content`, 'a string or an array of parts');
  return item;
}
