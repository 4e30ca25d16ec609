import { GatewayError } from '../sdk/errors.ts';

/** The client went away while it sent its request. */
export function clientLeft(): GatewayError {
  return new GatewayError(
    'client_closed_request',
    'The client closed the connection while sending its request.',
  );
}

/** 413 for a body beyond the limit. */
export function tooLarge(limit: number): GatewayError {
  return new GatewayError('request_too_large', `The request body is larger than ${limit} bytes.`);
}
