/** Errors of the ark format. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';

const kinds: Readonly<Record<number, readonly [type: string, code: string]>> = {
  400: ['BadRequest', 'InvalidParameter'],
  401: ['Unauthorized', 'AuthenticationError'],
  403: ['Forbidden', 'AccessDenied'],
  404: ['NotFound', 'ResourceNotFound'],
  409: ['BadRequest', 'OperationDenied'],
  413: ['BadRequest', 'InvalidParameter'],
  429: ['TooManyRequests', 'RateLimitExceeded'],
  503: ['ServiceUnavailable', 'ServerOverloaded'],
};

/** The error before anything was sent: `{error: {code, message, param, type}}`. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  const [type, code] =
    kinds[error.status] ??
    (error.status < 500
      ? ['BadRequest', 'InvalidParameter']
      : ['InternalServerError', 'InternalServiceError']);
  const own =
    error.code === 'missing_required_parameter'
      ? 'MissingParameter'
      : error.code === 'content_policy_violation'
        ? 'InputTextSensitiveContentDetected'
        : error.code === 'insufficient_quota'
          ? 'QuotaExceeded'
          : code;
  return {
    status: error.status,
    headers: { 'x-request-id': requestId, ...retryHeaders(error) },
    body: { error: { code: own, message: error.message, param: error.param ?? '', type } },
  };
}
