/** Errors of generateContent, read and written. */
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';
import { setOf } from '../_shared/fields.ts';

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
};

/** Returns the canonical word for an HTTP status. */
export function statusWord(status: number): string {
  return statuses[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'UNAVAILABLE');
}

const keyErrors = setOf('missing_api_key invalid_api_key expired_api_key disabled_api_key');

/** Returns the error object, the same before a reply and in the middle of a stream. */
export function errorBody(error: GatewayError): JsonObject {
  const details = errorDetails(error);
  return {
    error: {
      code: error.status,
      message: error.message,
      status: statusWord(error.status),
      ...(details.length === 0 ? {} : { details }),
    },
  };
}

function errorDetails(error: GatewayError): readonly JsonObject[] {
  const type = 'type.googleapis.com/google.rpc.';
  const details: JsonObject[] = [];
  if (keyErrors.has(error.code)) {
    details.push({ '@type': `${type}ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' });
  }
  // A limit of the caller's own, not of the account that the gateway has at a provider.
  if (error.status === 429 && error.origin === 'client') {
    details.push({ '@type': `${type}QuotaFailure`, violations: [{ description: error.message }] });
  }
  if (error.status === 429 && error.retryAfter !== undefined) {
    details.push({ '@type': `${type}RetryInfo`, retryDelay: `${wait(error.retryAfter)}s` });
  }
  if (error.status === 400 && error.param !== undefined) {
    const fieldViolations = [{ field: error.param, description: error.message }];
    details.push({ '@type': `${type}BadRequest`, fieldViolations });
  }
  return details;
}

function wait(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

/** Returns the error before anything was sent. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  return {
    status: error.status,
    headers: { 'x-request-id': requestId, ...retryHeaders(error) },
    body: errorBody(error),
  };
}

/** Returns the 502 error for a response that cannot be understood. */
export function garbage(cause?: unknown): GatewayError {
  return unusableResponse('sent an invalid response', cause);
}

/** Returns a value of a reply as compact JSON. Throws 502 if it is nested too deeply to be written. */
export function replyText(value: JsonValue): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw garbage(cause);
  }
}
