/** Failures of MCP servers, as errors that callers may read. */
import { GatewayError } from 'sluice';
import type { InsufficientScopeError } from '@modelcontextprotocol/client';
import type { McpSdk } from './sdk.ts';

/** Maximum number of characters of a server's message in an error. */
const maxText = 2_000;

/** Returns the GatewayError of whatever a request to a server failed with. The server's own JSON-RPC error is its `cause`. */
export function serverError(name: string, error: unknown, sdk: McpSdk | undefined): GatewayError {
  if (error instanceof GatewayError) return error;
  const server = `The MCP server "${name}"`;
  const details = { origin: 'upstream', cause: error } as const;
  if (sdk === undefined) return new GatewayError('upstream_error', `${server} cannot be reached.`, details);
  if (error instanceof sdk.ProtocolError)
    return new GatewayError('upstream_error', `${server} refused the request: ${bounded(error.message)}`, {
      ...details,
      retryable: false,
    });
  if (error instanceof sdk.InsufficientScopeError)
    return new GatewayError(
      'upstream_error',
      `${server} does not let the gateway do this: ${scopeText(error)}`,
      {
        ...details,
        retryable: false,
      },
    );
  if (error instanceof sdk.UnauthorizedError || isDenied(error, sdk))
    return new GatewayError('upstream_error', `${server} does not accept the gateway's credentials.`, {
      ...details,
      retryable: false,
    });
  if (error instanceof sdk.SdkError && error.code === 'REQUEST_TIMEOUT')
    return new GatewayError('upstream_timeout', `${server} did not respond in time.`, details);
  if (error instanceof sdk.SdkError && error.code === 'CONNECTION_CLOSED')
    return new GatewayError('upstream_cut', `${server} closed its connection.`, details);
  if (error instanceof sdk.SdkError && error.code === 'INVALID_RESULT')
    return new GatewayError('upstream_error', `${server} sent an invalid response.`, details);
  return new GatewayError('upstream_error', `${server} cannot be reached.`, details);
}

function scopeText({ requiredScope }: InsufficientScopeError): string {
  return requiredScope === undefined
    ? 'its token has too small a scope.'
    : `its token needs the scope "${bounded(requiredScope)}".`;
}

function isDenied(error: unknown, sdk: McpSdk): boolean {
  return error instanceof sdk.SdkHttpError && (error.status === 401 || error.status === 403);
}

/** Returns true for the answer of a server that no longer knows the connection's session: it has not run the request. */
export function isLostSession(error: unknown, sdk: McpSdk): boolean {
  return error instanceof sdk.SdkHttpError && error.status === 404;
}

/** Returns a text of a server, cut to a length that fits into errors and logs. */
export function bounded(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText)}…`;
}
