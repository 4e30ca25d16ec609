/** Error envelope and reply headers of the formats that share OpenAI's `{error: {message, type, param, code}}`. */
import type { ErrorCode, GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';

/** Codes whose `type` is not that of their status. */
const types: { readonly [Code in ErrorCode]?: string } = {
  forbidden: 'permission_error',
  rate_limit_exceeded: 'rate_limit_error',
  insufficient_quota: 'insufficient_quota',
};

/** Codes that the official API spells differently; null where it sends none. */
const codes: { readonly [Code in ErrorCode]?: string | null } = {
  missing_api_key: null,
  expired_api_key: 'invalid_api_key',
  disabled_api_key: 'invalid_api_key',
};

function typeOf(error: GatewayError): string {
  const type = types[error.code];
  if (type !== undefined) return type;
  if (error.status < 500) return 'invalid_request_error';
  return error.status === 503 ? 'service_unavailable_error' : 'server_error';
}

/** Returns the error envelope of chat completions: `{error: {message, type, param, code}}`. */
export function chatErrorBody(error: GatewayError): JsonObject {
  const code = codes[error.code];
  return {
    error: {
      message: error.message,
      type: typeOf(error),
      param: error.param ?? null,
      code: code === undefined ? error.code : code,
    },
  };
}

/** Returns the error before anything was sent, in the formats that share that envelope. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  return {
    status: error.status,
    headers: { ...replyHeaders(requestId), ...retryHeaders(error) },
    body: chatErrorBody(error),
  };
}

/** Returns the headers of every reply of those formats. */
export function replyHeaders(requestId: string): Readonly<Record<string, string>> {
  return { 'x-request-id': requestId };
}
