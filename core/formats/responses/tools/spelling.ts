/** Maps the tools of a Responses request, in namespaces or not, to neutral names, and back to their types and names. */
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { clientTools, isClientTool } from './client.ts';
import { listOf } from '../../_shared/fields.ts';

/** Spelling of a tool in a request of this format. */
export interface ToolSpelling {
  /** The `type` of its calls: `function_call`, `custom_tool_call`, `local_shell_call`, `shell_call`, `apply_patch_call`. */
  readonly call: string;
  readonly name: string;
  /** The namespace tool that holds it. */
  readonly namespace?: string;
}

/**
 * Returns the neutral name of a tool in a namespace, unique among those of a request. Tools outside of namespaces keep their own names; the
 * client-run built-in ones (`local_shell`, `shell`, `apply_patch`) are named like their type.
 */
export function neutralName(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}

/** Returns every tool that a body offers, in `tools` or in `additional_tools` items, by its neutral name. */
export function toolSpellings(body: JsonObject): ReadonlyMap<string, ToolSpelling> {
  const spellings = new Map<string, ToolSpelling>();
  addTools(spellings, body.tools, undefined);
  for (const item of listOf(body.input)) {
    if (isObject(item) && item.type === 'additional_tools') addTools(spellings, item.tools, undefined);
  }
  return spellings;
}

function addTools(
  spellings: Map<string, ToolSpelling>,
  tools: JsonValue | undefined,
  namespace: string | undefined,
): void {
  for (const tool of listOf(tools)) {
    if (!isObject(tool) || typeof tool.type !== 'string') continue;
    const { type, name } = tool;
    if (type === 'namespace' && namespace === undefined) {
      if (typeof name === 'string') addTools(spellings, tool.tools, name);
    } else if (isClientTool(type, tool)) {
      add(spellings, { call: clientTools[type]?.call ?? '', name: type });
    } else if (typeof name === 'string' && (type === 'function' || type === 'custom')) {
      const call = type === 'custom' ? 'custom_tool_call' : 'function_call';
      add(spellings, namespace === undefined ? { call, name } : { call, name, namespace });
    }
  }
}

/** Keeps the name for the first tool that has it. */
function add(spellings: Map<string, ToolSpelling>, spelling: ToolSpelling): void {
  const name = neutralName(spelling.name, spelling.namespace);
  if (!spellings.has(name)) spellings.set(name, spelling);
}
