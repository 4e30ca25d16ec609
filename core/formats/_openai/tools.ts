import type { ChatRequest } from '../../model/chat.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
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
