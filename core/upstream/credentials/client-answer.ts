/** Handles provider responses to requests with a client's own credential: errors of that account go to the client, without the credential. */
import { of } from 'rxjs';
import { defined } from '../../formats/_shared/fields.ts';
import { upstreamError } from '../../formats/_shared/upstream-error/index.ts';
import { readErrorShape } from '../../formats/_shared/upstream-error/shape.ts';
import { upstreamFailureOf, type UpstreamFault } from '../../sdk/upstream-failure.ts';
import type { Call } from '../../sdk/call.ts';
import type { Upstream } from '../../sdk/channel.ts';
import { GatewayError, type ErrorCode } from '../../sdk/errors.ts';
import { gathered } from '../../sdk/operators.ts';
import { replyHeaders } from '../../sdk/reply-headers.ts';
import { wholeBytes } from '../../sdk/whole-bytes.ts';

/** Maximum number of bytes of an error that are read. */
const errorLimit = 64 * 1024;

/** Faults of the client's account, with the error code and the default status of the error for the client. */
const own = new Map<UpstreamFault, readonly [ErrorCode, number]>([
  ['credentials', ['invalid_api_key', 401]],
  ['no-credit', ['insufficient_quota', 402]],
  ['rate-limit', ['rate_limit_exceeded', 429]],
  ['not-found', ['model_not_found', 404]],
]);

/** Returns the error without the credential, where a provider has quoted it. */
export function withoutCredential(error: GatewayError, credential: string): GatewayError {
  const { code, message, cause } = error;
  const failure = upstreamFailureOf(error);
  const maskedCause =
    failure?.message.includes(credential) === true
      ? { ...failure, message: masked(failure.message, credential) }
      : cause;
  if (maskedCause === cause && !message.includes(credential)) return error;
  const { param, origin, status, retryable, retryAfter, headers, details } = error;
  return new GatewayError(code, masked(message, credential), {
    ...defined({ param, retryAfter, details }),
    origin,
    status,
    retryable,
    headers,
    cause: maskedCause,
  });
}

function masked(text: string, credential: string): string {
  return text.replaceAll(credential, '…');
}

/** Returns true for a failure of the client's own account, which does not count against the channel. */
export function isOfClient(error: Error): boolean {
  const fault = upstreamFailureOf(error)?.fault;
  return fault !== undefined && own.has(fault);
}

/**
 * Returns a provider's response to a request with the client's own credential. Rejects with a GatewayError of origin `client`, with the
 * provider's message, for faults of the client's account. No error contains the credential.
 */
export async function clientAnswer(call: Call, upstream: Upstream, credential: string): Promise<Upstream> {
  passLimits(call, upstream.headers);
  if (upstream.status < 400) return upstream;
  const body = await bodyOf(call, upstream).then((text) => masked(text, credential));
  const error = upstreamError(upstream.status, body, upstream.headers);
  if (isOfClient(error)) throw ofClient(error, readErrorShape(body).message, upstream.headers);
  return { ...upstream, bytes: of(Buffer.from(body)) };
}

/** Returns the error for a fault of the client's account, with the provider's message. It causes no fallback and no health failure. */
export function ofClient(
  error: GatewayError,
  message: string,
  headers: Upstream['headers'] = {},
): GatewayError {
  const { fault = 'credentials', status: stated = 0 } = upstreamFailureOf(error) ?? {};
  const [code, status] = own.get(fault) ?? ['invalid_api_key', 401];
  return new GatewayError(code, message === '' ? error.message : message, {
    origin: 'client',
    status: stated >= 400 ? stated : status,
    retryable: fault === 'rate-limit',
    cause: error.cause,
    headers: textsOf(headers, (name) => name === 'www-authenticate' || name === 'x-should-retry'),
    ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
  });
}

/** Forwards the rate limit headers of the client's own account to the client. */
function passLimits(call: Call, headers: Upstream['headers']): void {
  const limits = textsOf(headers, (name) => /-ratelimit-/.test(name));
  call.set(replyHeaders, { ...limits, ...call.get(replyHeaders) });
}

function textsOf(
  headers: Upstream['headers'],
  isWanted: (name: string) => boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && isWanted(name) ? [[name, value]] : [],
    ),
  );
}

/** Returns the body of an error; empty where it exceeds the limit or breaks off. */
async function bodyOf(call: Call, { bytes }: Upstream): Promise<string> {
  try {
    const [whole] = await gathered(call, bytes.pipe(wholeBytes(errorLimit)));
    return whole?.toString() ?? '';
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'client_closed_request') throw error;
    return '';
  }
}
