/** Errors as AWS's SDKs read them, for Converse and InvokeModel: exception names, error headers, and exceptions inside an event stream. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { retryHeaders } from './retry-headers.ts';
import type { ErrorReply } from '../../sdk/format.ts';

/** HTTP status → the name under which SDKs raise an error. Others are the last two's. */
const types: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  409: 'ConflictException',
  413: 'ValidationException',
  429: 'ThrottlingException',
  503: 'ServiceUnavailableException',
  504: 'ModelTimeoutException',
  529: 'ServiceUnavailableException',
};

function typeOf({ status, code }: GatewayError): string {
  if (code === 'insufficient_quota') return 'ServiceQuotaExceededException';
  return types[status] ?? (status < 500 ? 'ValidationException' : 'InternalServerException');
}

/** Returns the headers that every reply carries; the SDKs read the second. */
export function replyHeaders(requestId: string): Readonly<Record<string, string>> {
  return { 'x-request-id': requestId, 'x-amzn-requestid': requestId };
}

/** Returns the error before anything was sent. Its kind stands in a header. */
export function errorReply(error: GatewayError, requestId: string): ErrorReply {
  return {
    status: error.status,
    headers: { ...replyHeaders(requestId), ...retryHeaders(error), 'x-amzn-errortype': typeOf(error) },
    body: { message: error.message },
  };
}

/** Returns an error in the middle of a stream, as one of the exceptions that an event stream can carry. */
export function streamError(error: GatewayError): JsonObject {
  return { message: error.message, __type: exceptionOf(error) };
}

function exceptionOf({ status, origin }: GatewayError): string {
  if (status === 429) return 'throttlingException';
  if (status === 503 || status === 529) return 'serviceUnavailableException';
  if (status < 500) return 'validationException';
  return origin === 'upstream' ? 'modelStreamErrorException' : 'internalServerException';
}
