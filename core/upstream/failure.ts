/** Converts failures of a connection to a provider to the error for the client. */
import { GatewayError } from '../sdk/errors.ts';

/** Progress of a request when it failed. */
export interface HowFar {
  /** The response had begun. */
  readonly started: boolean;
  /** True when the request was sent on a reused connection and no byte was received since. */
  readonly stale: boolean;
}

/** Error codes of a connection that the provider has closed. */
const closed = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** Returns the error for the client. It never contains an address. */
export function upstreamFailure(cause: Error & { code?: unknown }, { started, stale }: HowFar): GatewayError {
  // An error of the request's body, from the code that reads it.
  if (cause instanceof GatewayError) return cause;
  const code = typeof cause.code === 'string' ? cause.code : '';
  switch (code) {
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return failure('upstream_timeout', 'The upstream sent no data within the idle timeout.', cause);
    case 'UND_ERR_CONNECT_TIMEOUT':
      return failure('upstream_timeout', 'The upstream could not be reached in time.', cause);
  }
  if (started)
    return failure(
      'upstream_cut',
      'The upstream closed the connection before the response was complete.',
      cause,
    );
  const sentence = 'The upstream could not be reached.';
  return new GatewayError('upstream_error', sentence, {
    origin: 'upstream',
    cause,
    ...(stale && closed.has(code) ? { staleConnection: true } : {}),
  });
}

function failure(code: 'upstream_timeout' | 'upstream_cut', sentence: string, cause: Error): GatewayError {
  return new GatewayError(code, sentence, { origin: 'upstream', cause });
}
