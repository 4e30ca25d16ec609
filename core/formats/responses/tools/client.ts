/**
 * Table of Responses' built-in tools that the client runs (`local_shell`, `shell`, `apply_patch`), as functions with JSON Schemas for other
 * formats.
 */
import type { JsonObject } from '../../../model/json.ts';

/** A built-in tool whose calls the client carries out. For other formats it is a function named like its type. */
export interface ClientTool {
  /** The `type` of its calls. */
  readonly call: string;
  /** The field of a call that holds its action. The JSON text of it is the neutral call's input. */
  readonly payload: 'action' | 'operation';
  readonly description: string;
  /** JSON Schema of the payload. */
  readonly schema: JsonObject;
}

const text: JsonObject = { type: 'string' };
const texts: JsonObject = { type: 'array', items: text };
const count: JsonObject = { type: 'integer' };

/** The tools by their type, which is also their neutral name. */
export const clientTools: Readonly<Record<string, ClientTool>> = {
  local_shell: {
    call: 'local_shell_call',
    payload: 'action',
    description: "Runs one command in a shell on the user's computer.",
    schema: {
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['exec'] },
        command: texts,
        env: { type: 'object', additionalProperties: text },
        timeout_ms: count,
        user: text,
        working_directory: text,
      },
      required: ['type', 'command', 'env'],
    },
  },
  shell: {
    call: 'shell_call',
    payload: 'action',
    description: "Runs shell commands on the user's computer.",
    schema: {
      type: 'object',
      properties: { commands: texts, timeout_ms: count, max_output_length: count },
      required: ['commands'],
    },
  },
  apply_patch: {
    call: 'apply_patch_call',
    payload: 'operation',
    description:
      'Creates, changes or deletes one file. `diff` is needed to create or change it: lines that begin with +, - or a space, under @@ headers.',
    schema: {
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
        path: text,
        diff: text,
      },
      required: ['type', 'path'],
    },
  },
};

/** Returns the tool whose calls have this `type`, with its name; undefined for every other type. */
export function clientToolOfCall(type: string): (ClientTool & { readonly name: string }) | undefined {
  for (const [name, tool] of Object.entries(clientTools)) if (tool.call === type) return { ...tool, name };
  return undefined;
}

/** Returns true for a tool that the client itself runs. A `shell` in a container of the provider's is not one. */
export function isClientTool(type: string, tool: JsonObject): boolean {
  if (!Object.hasOwn(clientTools, type)) return false;
  const { environment } = tool;
  if (typeof environment !== 'object' || environment === null || Array.isArray(environment)) return true;
  return (environment as JsonObject).type === 'local';
}
