/** Failures as the JSON-RPC errors that callers read. */
import { GatewayError } from 'sluice';
import { bounded } from '../servers/index.ts';
import type { McpServerSdk } from './sdk.ts';

/** Code of failures that JSON-RPC and MCP have none for. */
const ownCode = -32_000;

/** Maximum number of characters of a server's data in an error, as JSON. */
const maxData = 16_384;

/**
 * Returns the error of the server itself where it answered with one. Others have the gateway's sentence, and as `data` its code, status and
 * seconds to wait.
 */
export function rpcError(error: unknown, { ProtocolError, ProtocolErrorCode }: McpServerSdk): Error {
  if (error instanceof ProtocolError) return error;
  if (!(error instanceof GatewayError))
    return new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error');
  const { cause, code, status, message, retryAfter } = error;
  if (cause instanceof ProtocolError)
    return new ProtocolError(cause.code, bounded(cause.message), boundedData(cause.data));
  if (code === 'not_found') return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  return new ProtocolError(ownCode, message, {
    code,
    status,
    ...(retryAfter === undefined ? {} : { retryAfter: Math.ceil(retryAfter) }),
  });
}

/** Returns true for what no caller and no server has caused. */
export function isDefect(error: unknown, { ProtocolError }: McpServerSdk): boolean {
  return !(error instanceof ProtocolError) && !(error instanceof GatewayError);
}

/** Returns data of a server's error, or nothing in place of data that is too large. */
function boundedData(data: unknown): unknown {
  return data === undefined || JSON.stringify(data).length > maxData ? undefined : data;
}
