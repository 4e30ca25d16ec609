/** Decodes and encodes function tools and custom tools (free text) for chat completions and Responses. */
import type { Tool } from '../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { optionalBoolean, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import { putBack } from '../_shared/extra.ts';
import { defined } from '../_shared/fields.ts';
import { freeTextSchema } from '../_shared/free-text.ts';
import { strictSchema } from '../_shared/writing.ts';
import { dropField, type Scope } from './scope.ts';

/** A tool that the client carries out. */
type NamedTool = Extract<Tool, { readonly type: 'function' | 'custom' }>;

/** The members that the neutral model has words for. */
export const namedToolMembers = {
  function: 'name description parameters strict',
  custom: 'name description format',
} as const;

/** Decodes a function or free-text tool from an object at `path`. Throws 400 with the path. */
export function readNamedTool(
  type: NamedTool['type'],
  object: JsonObject,
  at: string,
  path: string,
): NamedTool {
  const name = requiredString(object.name, `${path}.name`);
  const description = optionalString(object.description, `${path}.description`);
  if (type === 'custom') {
    const format = optionalObject(object.format, `${path}.format`);
    return { type, name, at, ...defined({ description, format }) };
  }
  const schema = optionalObject(object.parameters, `${path}.parameters`);
  const strict = optionalBoolean(object.strict, `${path}.strict`);
  return { type, name, at, ...defined({ description, schema, strict }) };
}

/** Rules by which a format encodes a tool that the client runs. */
interface NamedToolWords {
  /** Returns a tool of this kind with these members. */
  readonly buildTool: (kind: NamedTool['type'], members: JsonObject) => MutableObject;
  /** {@link putBack} */
  readonly nested?: readonly string[];
  /** Defaults for a function that lacks these members; `wrapped`: the function stands for a tool that takes free text. */
  readonly usual?: (
    scope: Scope,
    wrapped: boolean,
  ) => { readonly parameters?: JsonObject; readonly strict?: boolean };
  /** The grammar of a free text, in the format's words. */
  readonly grammar?: (format: JsonObject) => JsonObject;
}

/** Returns a function, or a tool that takes free text. */
export function writeNamedTool(
  tool: NamedTool,
  scope: Scope,
  { buildTool, nested, usual: usually = () => ({}), grammar = (given) => given }: NamedToolWords,
): JsonObject {
  const { description } = tool;
  const name = scope.names?.there(tool.name) ?? tool.name;
  const wrapped = tool.type === 'custom' && scope.wrapped.has(tool.name);
  const usual = usually(scope, wrapped);
  // Its stored members belong to a free-text tool.
  if (wrapped) {
    if (tool.format !== undefined) dropField(tool, 'format', scope);
    return buildTool('function', { name, ...defined({ description }), ...usual, parameters: freeTextSchema });
  }
  const members =
    tool.type === 'function'
      ? {
          parameters: tool.schema ? strictSchema(tool, tool.schema, scope) : usual.parameters,
          strict: tool.strict ?? usual.strict,
        }
      : { format: tool.format && grammar(tool.format) };
  const wire = buildTool(tool.type, defined({ name, description, ...members }));
  putBack(wire, tool.extra?.[scope.format] ?? {}, nested);
  return wire;
}
