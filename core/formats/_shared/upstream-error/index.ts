/** Turns a provider's error response, error event or unusable reply into the GatewayError that the client receives. */
import type { JsonObject } from '../../../model/json.ts';
import { GatewayError, type ErrorCode, type ErrorDetails } from '../../../sdk/errors.ts';
import { defined } from '../fields.ts';
import { redact } from '../redact.ts';
import type { UpstreamFailure } from '../../../sdk/errors.ts';
import { faultOf, faults } from './faults.ts';
import { header, retryAfterOf, type Headers } from './retry-after.ts';
import { readErrorShape, type ErrorShape } from './shape.ts';

/**
 * Returns the GatewayError (origin `upstream`) that the client is sent for a provider's error response, or for an error body or event
 * under status 200. It reads status, code and message of the usual error bodies, hides what concerns the operator's account, and knows
 * whether another channel or a later attempt may succeed (`retryable`, `retryAfter`).
 *
 * @example
 * const { status, headers, bytes } = await http.send(call, request);
 * const [body] = await gathered(call, bytes.pipe(wholeBytes(64 * 1024)));
 * if (status >= 400) throw upstreamError(status, body?.toString() ?? '', headers);
 */
export function upstreamError(status: number, body: string, headers: Headers = {}): GatewayError {
  const shape = withKind(readErrorShape(body), header(headers, 'x-amzn-errortype'));
  const fault = faultOf(status, shape);
  const answer = faults[fault];
  const options = fault === 'conversation' ? conversationAnswer(status, shape) : {};
  const message = redact(shape.message);
  const cause: UpstreamFailure = { fault, status, message };
  const passes = fault === 'rate-limit' || fault === 'overloaded' || fault === 'timeout';
  const details: ErrorDetails = {
    origin: 'upstream',
    retryable: answer.retryable,
    cause,
    ...defined({ retryAfter: passes ? retryAfterOf(headers, shape) : undefined }),
    ...(shape.param !== undefined && fault === 'bad-request' ? { param: redact(shape.param) } : {}),
    ...(shape.errorCode !== undefined && (fault === 'bad-request' || fault === 'conversation')
      ? { details: { error_code: shape.errorCode } }
      : {}),
    ...defined({ status: options.status }),
  };
  return new GatewayError(
    options.code ?? answer.code,
    answer.hide || message === '' ? answer.message : message,
    details,
  );
}

/** Adds the error code of a header, which may be followed by a URL: `ThrottlingException:http://…`. */
function withKind(shape: ErrorShape, kind: string | undefined): ErrorShape {
  const word = kind?.split(':')[0]?.toLowerCase() ?? '';
  return word === '' ? shape : { ...shape, words: [...shape.words, word] };
}

/** Passes on the status of a lost thread (404) or a busy one (409), because clients resend everything, or later, depending on it. */
function conversationAnswer(
  status: number,
  shape: ErrorShape,
): { readonly code?: ErrorCode; readonly status?: number } {
  const stated = status >= 400 ? status : shape.status;
  if (stated === 404) return { code: 'not_found', status: stated };
  return stated === 409 ? { code: 'conflict', status: stated } : {};
}

/**
 * Returns an error for a provider's response that cannot be used (502, `upstream_error`). `what` completes the sentence "The upstream …".
 *
 * @example
 * if (!Array.isArray(body.images)) throw unusableResponse('sent no images');
 */
export function unusableResponse(what: string, cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', `The upstream ${what}.`, {
    origin: 'upstream',
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * Returns an error for a provider's stream that ended before its response did (502, `upstream_cut`).
 *
 * @example
 * end: () => { if (!isComplete) throw truncatedResponse(); return []; },
 */
export function truncatedResponse(): GatewayError {
  return new GatewayError(
    'upstream_cut',
    'The upstream closed the connection before the response was complete.',
    { origin: 'upstream' },
  );
}

/**
 * Returns true if the `error` of a provider's body or frame is an error. Providers also send `null`, `false`, `""` and similar values for
 * no error.
 *
 * @example
 * if (tellsError(body)) throw upstreamError(502, JSON.stringify(body));
 */
export function tellsError({ error }: JsonObject): boolean {
  return Array.isArray(error) ? error.length > 0 : Boolean(error);
}

/** Returns true for a body or frame with a type that is not an error. Its members are then those of that type. */
export function isNamed({ type }: JsonObject): boolean {
  return typeof type === 'string' && !/error|exception|fail/i.test(type);
}

/**
 * Throws a GatewayError if a provider's body is an error, with any status: `type: 'error'`, or an `error` with content.
 *
 * @example
 * decodeWhole(body) {
 *   throwIfError(body);
 *   return eventsOf(body);
 * }
 */
export function throwIfError(body: JsonObject): void {
  if (body.type === 'error' || tellsError(body)) throw upstreamError(200, JSON.stringify(body));
}
