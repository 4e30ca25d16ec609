/** Errors of the messages format, and the headers beside them. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ErrorReply } from '../../sdk/format.ts';

const typeOfStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

function typeOf({ code, status }: GatewayError): string {
  if (code === 'server_is_overloaded') return 'overloaded_error';
  return typeOfStatus[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/** Returns the error envelope: the body of an error reply, and the data of an `error` event. */
export function errorBody(error: GatewayError, requestId: string): JsonObject {
  return {
    type: 'error',
    error: {
      type: typeOf(error),
      message: error.message,
      ...(error.details === undefined ? {} : { details: error.details }),
    },
    request_id: requestId,
  };
}

/** Returns the headers that every reply carries; the format's SDKs read the first. */
export function replyHeaders(requestId: string): Readonly<Record<string, string>> {
  return { 'request-id': requestId, 'x-request-id': requestId };
}

/** Encodes an error before anything was sent. Sets `x-should-retry`, because the SDKs retry every 429 and 5xx by default. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  const retries = error.status === 429 || error.status >= 500;
  const waits = error.status === 429 || error.status === 503 || error.status === 529;
  const after = error.retryAfter ?? (waits && error.retryable ? 1 : undefined);
  return {
    status: error.status,
    headers: {
      ...replyHeaders(requestId),
      ...error.headers,
      ...(retries && !error.retryable ? { 'x-should-retry': 'false' } : {}),
      ...(after === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(after))) }),
    },
    body: errorBody(error, requestId),
  };
}
