/** Tool calls as items of Responses, in both directions: functions, free-text tools, shell and patch actions. */
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { clientToolOfCall, isClientTool } from './client.ts';
import { textOf } from '../../_shared/fields.ts';
import { neutralName, type ToolSpelling } from './spelling.ts';

/** Returns the field of a call of this type that holds its arguments as an object; undefined for calls whose arguments are text. */
export function actionField(type: string): 'action' | 'operation' | undefined {
  return clientToolOfCall(type)?.payload;
}

/** Decodes the neutral name and arguments of a call's item; undefined for an item that is no call of a client's tool. */
export function readCall(
  item: JsonObject,
): { readonly name: string; readonly input: string; readonly custom: boolean } | undefined {
  const namespace = typeof item.namespace === 'string' && item.namespace !== '' ? item.namespace : undefined;
  switch (item.type) {
    case 'function_call':
      return {
        name: neutralName(textOf(item.name), namespace),
        input: textOf(item.arguments),
        custom: false,
      };
    case 'custom_tool_call':
      return { name: neutralName(textOf(item.name), namespace), input: textOf(item.input), custom: true };
    default: {
      const tool = typeof item.type === 'string' ? clientToolOfCall(item.type) : undefined;
      // A tool in a container of the provider has been run already.
      if (tool === undefined || !isClientTool(tool.name, item)) return undefined;
      const action = item[tool.payload];
      return { name: tool.name, input: isObject(action) ? JSON.stringify(action) : '', custom: false };
    }
  }
}

/** Returns the spelling of a call: the provider's where it used this format, else that of the client's tools. */
export function spellingOf(
  call: { readonly name: string; readonly custom: boolean },
  item: JsonObject | undefined,
  spellings: ReadonlyMap<string, ToolSpelling>,
): ToolSpelling {
  const written = item === undefined ? undefined : readCall(item);
  if (item !== undefined && written?.name === call.name) {
    const spelling = { call: textOf(item.type), name: textOf(item.name) };
    return typeof item.namespace === 'string' ? { ...spelling, namespace: item.namespace } : spelling;
  }
  const plain = { call: call.custom ? 'custom_tool_call' : 'function_call', name: call.name };
  const spelling = spellings.get(call.name);
  if (spelling === undefined) return plain;
  return call.custom ? { ...spelling, call: 'custom_tool_call' } : spelling;
}

/** Decodes a call's arguments as an action; undefined when they are invalid, because a shell must not receive invalid commands. */
export function writeAction(type: string, input: string): JsonObject | undefined {
  const action = parseObject(input);
  if (action === undefined) return undefined;
  switch (type) {
    case 'local_shell_call':
      if (!isCommand(action.command)) return undefined;
      return { type: 'exec', env: {}, ...action };
    case 'shell_call':
      return isCommand(action.commands) ? action : undefined;
    default:
      return typeof action.type === 'string' && typeof action.path === 'string' ? action : undefined;
  }
}

function isCommand(value: unknown): boolean {
  return Array.isArray(value) && value.every((word) => typeof word === 'string');
}

/** Returns the text of a free-text call that came wrapped as the one member of an object. */
export function unwrapInput(input: string): string {
  const value = parseObject(input);
  return typeof value?.input === 'string' ? value.input : input;
}
