import type { ChatRequest, Tool } from '../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { putBack } from '../_shared/extra.ts';
import { defined } from '../_shared/fields.ts';
import { freeTextSchema } from '../_shared/free-text.ts';
import { ToolNames } from '../_shared/tool-ids.ts';

/** Tool names of up to 64 letters, digits, underscores and hyphens; only built where a name may have to change. */
export function toolNamesFor(
  request: ChatRequest,
  target: EncodeTarget,
  foreign: boolean,
): ToolNames | undefined {
  const limit = target.traits.toolNameLimit;
  if (limit === undefined && !foreign) return undefined;
  const names = new ToolNames(limit ?? 64);
  for (const tool of request.tools)
    if (tool.type === 'function' || tool.type === 'custom') names.there(tool.name);
  return names;
}

/** Names of the free-text tools that must go as functions: the channel says so by naming `customTools` among what its model refuses. */
export function wrappedTools(request: ChatRequest, target: EncodeTarget): ReadonlySet<string> {
  if (target.traits.refuses?.includes('customTools') !== true) return new Set();
  return new Set(request.tools.filter((tool) => tool.type === 'custom').map((tool) => tool.name));
}

/** How a format writes a tool that the client carries out. */
interface NamedToolWords {
  readonly format: string;
  /** A tool of this kind with these members. */
  readonly place: (kind: 'function' | 'custom', members: JsonObject) => MutableObject;
  /** {@link putBack} */
  readonly nested?: readonly string[];
  /** The provider's spelling of the name. */
  readonly name: string;
  /** The tool takes free text and goes as a function. */
  readonly wrapped: boolean;
  /** What a function gets where it does not say so itself. */
  readonly usual?: { readonly parameters?: JsonObject; readonly strict?: boolean };
  /** The grammar of a free text, in the format's words. */
  readonly grammar?: (format: JsonObject) => JsonObject;
}

/** A function, or a tool that takes free text. */
export function writeNamedTool(
  tool: Extract<Tool, { readonly type: 'function' | 'custom' }>,
  { format, place, nested, name, wrapped, usual, grammar = (given) => given }: NamedToolWords,
): JsonObject {
  const { description } = tool;
  // What is kept of it belongs to a tool that takes free text.
  if (wrapped)
    return place('function', { name, ...defined({ description }), ...usual, parameters: freeTextSchema });
  const members =
    tool.type === 'function'
      ? { parameters: tool.schema ?? usual?.parameters, strict: tool.strict ?? usual?.strict }
      : { format: tool.format && grammar(tool.format) };
  const wire = place(tool.type, defined({ name, description, ...members }));
  putBack(wire, tool.extra?.[format] ?? {}, nested);
  return wire;
}
