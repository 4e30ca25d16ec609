/** Connections to MCP servers, for the plugin's endpoint and for its tool loop. */
export { addressSchema, addressShape, processSchema, processShape } from './config.ts';
export { bounded } from './errors.ts';
export type { ConnectionTools } from './connection.ts';
export { readPages, type Page, type PageCursor } from './pages.ts';
export {
  openToolServer,
  type ServedTool,
  type ToolResult,
  type ToolServer,
  type ToolServerHooks,
} from './tool-server.ts';
