/** Errors of reading a request's body. */
import { GatewayError } from '../sdk/errors.ts';

/** Returns the error for a client that disconnected while it sent its request. */
export function clientLeft(): GatewayError {
  return new GatewayError(
    'client_closed_request',
    'The client closed the connection while sending its request.',
  );
}

/** Returns the 413 error for a body of more than `limit` bytes. */
export function tooLarge(limit: number): GatewayError {
  return new GatewayError('request_too_large', `The request body is larger than ${limit} bytes.`);
}
