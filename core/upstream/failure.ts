import { GatewayError } from '../sdk/errors.ts';

/** How far a request had come when it failed. */
export interface HowFar {
  /** Its answer had begun. */
  readonly started: boolean;
  /** It went out on a kept-alive connection, of which nothing was heard since. */
  readonly stale: boolean;
}

/** A connection that its other side has closed. */
const closed = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** What the client is told of a provider that could not be read. Never an address. */
export function upstreamFailure(cause: Error & { code?: unknown }, { started, stale }: HowFar): GatewayError {
  // Whoever makes the body has said what is wrong with it.
  if (cause instanceof GatewayError) return cause;
  const code = typeof cause.code === 'string' ? cause.code : '';
  switch (code) {
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return failure('upstream_timeout', 'The upstream sent nothing for too long.', cause);
    case 'UND_ERR_CONNECT_TIMEOUT':
      return failure('upstream_timeout', 'The upstream could not be reached in time.', cause);
  }
  if (started)
    return failure(
      'upstream_cut',
      'The upstream closed the connection before the answer was complete.',
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
