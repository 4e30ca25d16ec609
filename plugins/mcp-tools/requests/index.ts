/** Reads the MCP servers of requests, by format. */
import { isChat, type Block, type Call, type ChatRequest } from 'sluice';
import { readGenerateContent } from './generate-content.ts';
import { readMessages } from './messages.ts';
import { readChat, readResponses } from './openai.ts';
import type { RequestReader } from './requested.ts';

export type {
  FunctionTool,
  McpRequest,
  NamesOf,
  RequestedServer,
  RequestReader,
  ServerChoice,
} from './requested.ts';

const readers: ReadonlyMap<string, RequestReader> = new Map([
  ['chat-completions', readChat],
  ['generate-content', readGenerateContent],
  ['messages', readMessages],
  ['responses', readResponses],
]);

/** Returns the reader of a format; undefined for formats in which no tools of servers are offered. */
export function readerOf(format: string): RequestReader | undefined {
  return readers.get(format);
}

/** Returns true for a call whose request names servers. */
export function asksForServers({ outline }: Call): boolean {
  return isChat(outline) && asks(outline);
}

/** Returns true for a call whose earlier turns hold calls of servers' tools, in items that only the format of the client knows. */
export function remembersServers({ outline }: Call): boolean {
  return isChat(outline) && outline.messages.some(({ content }) => content.some(isMcpBlock));
}

const toolTypes = new Set(['mcp', 'mcp_toolset']);

function asks({ tools, extra, format }: ChatRequest): boolean {
  return (
    tools.some(
      (tool) =>
        tool.type === 'opaque' && (tool.name === 'mcpServers' || toolTypes.has(String(tool.value['type']))),
    ) || Array.isArray(extra?.[format]?.['mcp_servers'])
  );
}

/** Returns true for an item of an earlier turn that is about a server's tools. */
export function isMcpBlock(block: Block): boolean {
  if (block.type !== 'opaque') return false;
  const { type } = block.value;
  return typeof type === 'string' && type.startsWith('mcp_');
}
