import type { GatewayError } from '../../sdk/errors.ts';
import type { ErrorReply } from '../../sdk/format.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';

/** The error before anything was sent: `{code, message, request_id, status}`. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  const code = codeOf(error);
  return {
    status: error.status,
    headers: { 'x-request-id': requestId, ...retryHeaders(error) },
    body: { code, data: null, message: error.message, request_id: requestId, status: code },
  };
}

function codeOf({ code, status }: GatewayError): number {
  if (code === 'content_policy_violation') return 50_411;
  if (status === 401 || status === 403) return 50_400;
  if (status === 429) return 50_429;
  if (status < 500) return 50_215;
  return status === 503 ? 50_501 : 50_500;
}
