/** The official SDK's server, an optional package. */
import type * as server from '@modelcontextprotocol/server';
import { requirePackage } from 'sluice';
import { sdkVersion } from '../servers/sdk.ts';

/** Exports of the SDK's server. */
export type McpServerSdk = typeof server;

/** Loads the SDK's server. Throws with what to install where it is missing. */
export async function loadServerSdk(): Promise<McpServerSdk> {
  requirePackage('@modelcontextprotocol/server', sdkVersion, 'serve MCP', import.meta.url);
  return await import('@modelcontextprotocol/server');
}
