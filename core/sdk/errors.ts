/** Errors of the gateway, and the one table of their codes. */
import type { JsonObject } from '../model/json.ts';

export type { UpstreamFailure, UpstreamFault } from './upstream-failure.ts';

/** HTTP status of each code, and whether a retry of the same request may succeed. Codes are permanent. */
interface ErrorKind {
  readonly status: number;
  /** True: clients may try again. False on a 429 or 5xx sends `x-should-retry: false`. */
  readonly retry: boolean;
}

/** The one table of everything that can go wrong. Formats only wrap it in their envelope. */
export const errorTable = {
  /** The body is no JSON, or nested too deeply. */
  invalid_json: { status: 400, retry: false },
  /** A field that the operation needs is absent. */
  missing_required_parameter: { status: 400, retry: false },
  /** A field has the wrong type. */
  invalid_type: { status: 400, retry: false },
  /** A field has a value that its format does not have. */
  invalid_value: { status: 400, retry: false },
  /** The model or the operation does not take this field. */
  unsupported_parameter: { status: 400, retry: false },
  /** The model or the gateway does not take this value of the field. */
  unsupported_value: { status: 400, retry: false },
  /** The channel cannot carry a part of the input, such as audio. */
  unsupported_content: { status: 400, retry: false },
  /** The channel cannot carry a tool of the request. */
  unsupported_tool: { status: 400, retry: false },
  /** The request names a thread of the provider where the history is needed. */
  thread_unsupported_request: { status: 400, retry: false },
  /** The key has no stored response with this id. */
  previous_response_not_found: { status: 400, retry: false },
  /** The session over a WebSocket has reached its longest life. */
  websocket_connection_limit_reached: { status: 400, retry: true },
  /** The input is longer than the context of the model. */
  context_length_exceeded: { status: 400, retry: false },
  /** The provider refused the content. */
  content_policy_violation: { status: 400, retry: false },
  /** The provider refused the request for another reason. */
  invalid_request: { status: 400, retry: false },
  /** The video is not finished. */
  video_not_ready: { status: 400, retry: false },
  /** The request has no API key. */
  missing_api_key: { status: 401, retry: false },
  /** There is no such API key. */
  invalid_api_key: { status: 401, retry: false },
  /** The API key has expired. */
  expired_api_key: { status: 401, retry: false },
  /** The API key is switched off. */
  disabled_api_key: { status: 401, retry: false },
  /** The request needs a session or a token of the admin API, or the token of the metrics. */
  login_required: { status: 401, retry: false },
  /** The password is wrong. */
  wrong_password: { status: 401, retry: false },
  /** The sign-in needs the code of a second factor. */
  second_factor_required: { status: 401, retry: false },
  /** The key may not use this model. */
  model_not_allowed: { status: 403, retry: false },
  /** The key, session or token may not do this. */
  forbidden: { status: 403, retry: false },
  /** There is no such path. */
  unknown_url: { status: 404, retry: false },
  /** No channel serves this model. */
  model_not_found: { status: 404, retry: false },
  /** There is no such object, or it belongs to another key. */
  not_found: { status: 404, retry: false },
  /** The path has no such method. */
  method_not_allowed: { status: 405, retry: false },
  /** The client has not sent its request in time. */
  request_timeout: { status: 408, retry: true },
  /** The object exists already, or somebody else has changed it since. */
  conflict: { status: 409, retry: true },
  /** An earlier request with this idempotency key was interrupted: look whether it was carried out. */
  idempotency_outcome_unknown: { status: 409, retry: false },
  /** The body is larger than the gateway or the provider takes. */
  request_too_large: { status: 413, retry: false },
  /** The body has a content type that the operation does not take. */
  unsupported_media_type: { status: 415, retry: false },
  /** The idempotency key was used with another request. */
  idempotency_key_reused: { status: 422, retry: false },
  /** The key, its owner, the model or the channel has reached a rate limit. */
  rate_limit_exceeded: { status: 429, retry: true },
  /** The budget of the key or of its owner is spent, or the account of the channel is. */
  insufficient_quota: { status: 429, retry: false },
  /** The client left before the response began. Seen in the log alone. */
  client_closed_request: { status: 499, retry: false },
  /** The gateway failed. */
  internal_error: { status: 500, retry: true },
  /** The provider failed, or could not be reached. */
  upstream_error: { status: 502, retry: true },
  /** The provider broke the response off. */
  upstream_cut: { status: 502, retry: true },
  /** All channels of the model are disabled, or their circuit breakers are open. */
  no_available_channel: { status: 503, retry: true },
  /** No channel of the model serves this operation. */
  endpoint_not_supported: { status: 503, retry: false },
  /** The gateway or the provider has too much to do. */
  server_is_overloaded: { status: 503, retry: true },
  /** The provider did not respond in time. */
  upstream_timeout: { status: 504, retry: true },
  /** The request allows only a cached response (`only-if-cached`), and there is none. */
  not_cached: { status: 504, retry: false },
} as const satisfies Record<string, ErrorKind>;

/**
 * A permanent name of one kind of failure.
 *
 * @example
 * const code: ErrorCode = 'rate_limit_exceeded';
 */
export type ErrorCode = keyof typeof errorTable;

/**
 * Details of an error besides its code and message. All are optional.
 *
 * @example
 * throw new GatewayError('rate_limit_exceeded', 'Too many today.', { retryAfter: 3600 });
 */
export interface ErrorDetails {
  /** The field that is wrong, in the client's words: `messages[1].content[0].text`. */
  readonly param?: string;
  /** Party that caused the error. Default: `client` for a status below 500, else `gateway`. */
  readonly origin?: 'client' | 'gateway' | 'upstream';
  /** Overrides the table's status (an upstream's 422, a 529). */
  readonly status?: number;
  /** Overrides the table: may another channel or a later try succeed? */
  readonly retryable?: boolean;
  /** Seconds to wait before a retry, with fractions. Clients get whole seconds. */
  readonly retryAfter?: number;
  /** Response headers to add, lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as `error.details` in the messages envelope. */
  readonly details?: JsonObject;
  /**
   * True when a reused connection was closed before any response byte arrived, so that the provider has not processed the request and its health
   * is not affected. Never shown to a client.
   */
  readonly staleConnection?: boolean;
  /** For the log only: never shown to a client. */
  readonly cause?: unknown;
}

/** Maximum length of a message and of the path of a field, in characters. */
const longestMessage = 4_000;
const longestParam = 500;

/**
 * Every failure that a client may see. Before the first event of a reply it becomes a status in the client's envelope,
 * after it the format's error event. The message is shown to clients: it holds no secret and no upstream address, and is cut
 * where it is long.
 *
 * @example
 * throw new GatewayError('forbidden', 'This model is for the research team.', { param: 'model' });
 */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly param: string | undefined;
  readonly origin: 'client' | 'gateway' | 'upstream';
  readonly retryable: boolean;
  readonly retryAfter: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: JsonObject | undefined;
  readonly staleConnection: boolean;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(shortened(message), details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'GatewayError';
    const kind: ErrorKind = errorTable[code];
    this.code = code;
    this.status = details.status ?? kind.status;
    this.param = details.param === undefined ? undefined : shortened(details.param, longestParam);
    this.origin = details.origin ?? (this.status < 500 ? 'client' : 'gateway');
    this.retryable = details.retryable ?? kind.retry;
    this.retryAfter = details.retryAfter;
    this.headers = details.headers ?? {};
    this.details = details.details;
    this.staleConnection = details.staleConnection === true;
  }
}

/** Shortens a quoted text of a client or a provider by removing its middle, because its end is informative too. */
function shortened(text: string, most = longestMessage): string {
  if (text.length <= most) return text;
  const tail = Math.floor(most / 8);
  return `${text.slice(0, most - tail)}…${text.slice(-tail)}`.toWellFormed();
}

/**
 * Returns any thrown value as a GatewayError. A value that is not one becomes `internal_error` (500), whose message tells clients nothing
 * of it; the value is the `cause`.
 *
 * @example
 * try {
 *   return await next(call);
 * } catch (thrown) {
 *   log.warn({ code: toGatewayError(thrown).code }, 'call failed');
 *   throw thrown;
 * }
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return new GatewayError('internal_error', 'The gateway failed while handling this request.', {
    cause: error,
  });
}

/**
 * Returns a 400 error for a field of the wrong type. `expected` completes the sentence: `messages[0].role must be a string.`
 *
 * @example
 * if (typeof role !== 'string') throw wrongType('messages[0].role', 'a string');
 */
export function wrongType(path: string, expected: string): GatewayError {
  return new GatewayError('invalid_type', `${path} must be ${expected}.`, { param: path });
}

/**
 * Returns a 400 error for a value outside what is allowed. `rule` completes the sentence: `temperature must be between 0 and 2.`
 *
 * @example
 * if (temperature > 2) throw wrongValue('temperature', 'between 0 and 2');
 */
export function wrongValue(path: string, rule: string): GatewayError {
  return new GatewayError('invalid_value', `${path} must be ${rule}.`, { param: path });
}

/**
 * Returns a 400 error for a required field that is not there.
 *
 * @example
 * if (body.input === undefined) throw missingValue('input');
 */
export function missingValue(path: string): GatewayError {
  return new GatewayError('missing_required_parameter', `Missing required parameter: ${path}.`, {
    param: path,
  });
}

/**
 * Returns a 400 error for content that a channel's format cannot carry. `path` is the client's path of it.
 *
 * @example
 * throw unsupportedContent('messages[0].content[1]', 'a video', 'acme');
 */
export function unsupportedContent(path: string, what: string, format: string): GatewayError {
  return new GatewayError('unsupported_content', `${path}: ${what} cannot be sent to a ${format} channel.`, {
    param: path,
  });
}
