/** What requests of each format say about MCP servers. */
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

/** The reader of a format; undefined for formats in which no tools of servers are offered. */
export function readerOf(format: string): RequestReader | undefined {
  return readers.get(format);
}

/** What a call has to do with MCP, as far as its outline tells. */
export interface Concern {
  /** The request names servers. */
  readonly asks: boolean;
  /** Earlier turns hold calls of servers' tools, in items that only the format of the client knows. */
  readonly remembers: boolean;
}

/** Looks for MCP in a call. Undefined for a call that is no chat. */
export function concernOf(call: Call): Concern | undefined {
  const { outline } = call;
  if (!isChat(outline)) return undefined;
  return { asks: asks(outline), remembers: remembers(outline) };
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

function remembers({ messages }: ChatRequest): boolean {
  return messages.some(({ content }) => content.some(isMcpBlock));
}

/** True for an item of an earlier turn that is about a server's tools. */
export function isMcpBlock(block: Block): boolean {
  return block.type === 'opaque' && String(block.value['type']).startsWith('mcp_');
}
