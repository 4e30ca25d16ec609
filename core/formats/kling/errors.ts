/** Errors of the kling format. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';

const codes: Readonly<Record<number, number>> = {
  400: 1201,
  401: 1002,
  403: 1103,
  404: 1203,
  413: 1201,
  429: 1302,
  500: 5000,
  502: 5000,
  503: 5001,
  504: 5002,
};

/** The error before anything was sent: `{code, message, request_id}`. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  const code =
    error.code === 'content_policy_violation'
      ? 1301
      : error.code === 'insufficient_quota'
        ? 1102
        : (codes[error.status] ?? (error.status < 500 ? 1200 : 5000));
  return {
    status: error.status,
    headers: { 'x-request-id': requestId, ...retryHeaders(error) },
    body: { code, message: error.message, request_id: requestId },
  };
}
