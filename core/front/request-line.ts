/** Checks the request line and the headers that Node's parser lets pass, and delays `100 Continue` until the body is read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../sdk/errors.ts';

/** Returns the error for an invalid request line that Node's parser lets pass; undefined for a valid one. */
export function requestLineProblem({
  httpVersion,
  httpVersionMajor,
  url = '',
}: IncomingMessage): GatewayError | undefined {
  // A line without a version counts as 0.9, which has no headers, no status and no length.
  if (httpVersionMajor !== 1)
    return new GatewayError('invalid_request', `HTTP/${httpVersion} is not supported: use HTTP/1.1.`, {
      status: 505,
      origin: 'client',
      retryable: false,
    });
  // Clients do not send the part after a #. Only requests to a proxy have a whole URL.
  if ((url.startsWith('/') && !url.includes('#')) || /^https?:\/\/[^#]+$/i.test(url) || url === '*')
    return undefined;
  return new GatewayError('invalid_request', 'The request target is not a path: it must begin with a slash.');
}

/**
 * Returns the 431 error for headers beyond the limit, in bytes. Node's parser accepts twice as many, because the format of
 * the client is unknown for a request that the parser rejects.
 */
export function headerProblem(
  { url = '', rawHeaders }: IncomingMessage,
  limit: number,
): GatewayError | undefined {
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length + 2;
  return bytes > limit ? headersTooLarge() : undefined;
}

/** Returns the 431 error. */
export function headersTooLarge(): GatewayError {
  return new GatewayError('invalid_request', 'The headers of the request are too large.', { status: 431 });
}

/**
 * Sends `100 Continue` to a client with `Expect: 100-continue` when reading the body begins, which is after the key was checked. If the body
 * is not read, the client gets only the response, and the connection is closed.
 */
export function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close');
  const reading = (event: string): void => {
    if (event !== 'data' && event !== 'readable') return;
    request.off('newListener', reading);
    if (response.headersSent || response.destroyed) return;
    response.removeHeader('connection');
    response.writeContinue();
  };
  request.on('newListener', reading);
}
