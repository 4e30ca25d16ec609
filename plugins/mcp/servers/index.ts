/** Connections to MCP servers, for the plugin's endpoint and for its tool loop. */
export { addressSchema, addressShape, processSchema, processShape, type ServerConfig } from './config.ts';
export type { ConnectionTools } from './connection.ts';
export { loadSdk, type McpSdk } from './sdk.ts';
export {
  openToolServer,
  type RequestBounds,
  type ServedTool,
  type ToolCallOptions,
  type ToolResult,
  type ToolServer,
  type ToolServerHooks,
  type ToolServerSpec,
} from './tool-server.ts';
