/** Errors inside Responses: the `error` event of a stream, and the `error` member of a failed response. */
import type { ErrorCode, GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';

/** Returns the fields of the flat `error` event. */
export function errorEvent(error: GatewayError): JsonObject {
  return { code: error.code, message: error.message, param: error.param ?? null };
}

/**
 * Codes on which clients act in a failed response: they do not retry, and show the reason. All others are `invalid_prompt` where the request is at
 * fault, else `server_error`, which clients may retry.
 */
const failures: { readonly [Code in ErrorCode]?: string } = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  insufficient_quota: 'insufficient_quota',
  context_length_exceeded: 'context_length_exceeded',
  server_is_overloaded: 'server_is_overloaded',
};

/** Returns the `error` of a failed response object. */
export function failureOf(error: GatewayError): JsonObject {
  const code = failures[error.code] ?? (error.status < 500 ? 'invalid_prompt' : 'server_error');
  return { code, message: error.message };
}
