import type { GatewayError } from '../../errors.ts';
import { chatErrorBody } from '../_shared/chat-error.ts';
import { retryHeaders } from '../_shared/retry-headers.ts';
import type { ErrorReply } from '../format.ts';

/** The error before anything was sent. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  return {
    status: error.status,
    headers: { ...replyHeaders(requestId), ...retryHeaders(error) },
    body: chatErrorBody(error),
  };
}

/** The headers of every reply of this format. */
export function replyHeaders(requestId: string): Readonly<Record<string, string>> {
  return { 'x-request-id': requestId };
}
