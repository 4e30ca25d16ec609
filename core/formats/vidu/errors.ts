/** Errors of the vidu format. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'TaskNotFound',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
};

/** The error before anything was sent: `{code, reason, message, metadata}`. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  const { status, param, message } = error;
  return {
    status,
    headers: { 'x-request-id': requestId, ...retryHeaders(error) },
    body: {
      code: status,
      reason: reasons[status] ?? (status < 500 ? 'BadRequest' : 'InternalError'),
      message,
      metadata: { trace_id: requestId, ...(param === undefined ? {} : { field: param }) },
    },
  };
}
