import { GatewayError, type ErrorCode, type ErrorDetails } from '../../sdk/errors.ts';
import { redact } from './redact.ts';
import { readErrorShape, type ErrorShape } from './upstream-error-shape.ts';

/** What went wrong at the upstream, in terms of what the gateway does about it. */
export type UpstreamFault =
  | 'bad-request'
  | 'conversation'
  | 'context-length'
  | 'content-policy'
  | 'too-large'
  | 'credentials'
  | 'no-credit'
  | 'not-found'
  | 'rate-limit'
  | 'overloaded'
  | 'timeout'
  | 'failed';

/** The `cause` of the errors made here, for routing and the log: an upstream's 401 and its 500 are both a 502 to the client. */
export interface UpstreamFailure {
  readonly fault: UpstreamFault;
  /** The HTTP status that the upstream answered with; 200 for an error inside a stream. */
  readonly status: number;
  /** The upstream's sentence, cleaned; empty when it gave none. */
  readonly message: string;
}

/** What lies behind an error that {@link upstreamError} made; undefined for every other. */
export function upstreamFailureOf({ cause }: Error): UpstreamFailure | undefined {
  return typeof cause === 'object' && cause !== null && 'fault' in cause && 'message' in cause
    ? (cause as UpstreamFailure)
    : undefined;
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

interface Answer {
  readonly code: ErrorCode;
  /** Shown when the upstream gave no sentence, or always when `hide`. */
  readonly message: string;
  /** The upstream's sentence is about the operator's account and no business of the client. */
  readonly hide?: boolean;
  /** May another channel, or a later try, succeed? */
  readonly retryable: boolean;
}

/** Upstream fault → what the client sees. The client's own key is fine when the channel's is not: never a 401, 402, 403 or 404. */
const answers: Readonly<Record<UpstreamFault, Answer>> = {
  'bad-request': { code: 'invalid_request', message: 'The upstream refused the request.', retryable: false },
  // What the provider remembers of the conversation is not what the client thinks: it knows what to do, when it is told.
  conversation: {
    code: 'invalid_request',
    message: 'The upstream cannot go on with this conversation.',
    retryable: false,
  },
  'context-length': {
    code: 'context_length_exceeded',
    message: 'The request is longer than the context of the model.',
    retryable: false,
  },
  'content-policy': {
    code: 'content_policy_violation',
    message: 'The request was refused by the content policy of the upstream.',
    retryable: false,
  },
  'too-large': {
    code: 'request_too_large',
    message: 'The request is too large for the upstream.',
    retryable: false,
  },
  credentials: {
    code: 'upstream_error',
    message: 'The upstream refused the credentials of the channel.',
    hide: true,
    retryable: true,
  },
  'no-credit': {
    code: 'no_available_channel',
    message: 'The channel for this model has no credit left at its provider.',
    hide: true,
    retryable: true,
  },
  'not-found': {
    code: 'no_available_channel',
    message: 'The upstream does not know this model or endpoint.',
    hide: true,
    retryable: true,
  },
  'rate-limit': {
    code: 'rate_limit_exceeded',
    message: 'The upstream is limiting requests for this model.',
    retryable: true,
  },
  overloaded: { code: 'server_is_overloaded', message: 'The upstream is overloaded.', retryable: true },
  timeout: { code: 'upstream_timeout', message: 'The upstream took too long.', retryable: true },
  failed: { code: 'upstream_error', message: 'The upstream failed.', retryable: true },
};

/** Words that say more than the status beside them. Each fault with the machine-readable words that mean it. */
const wordsOf: readonly (readonly [UpstreamFault, ReadonlySet<string>])[] = [
  [
    'context-length',
    new Set([
      'context_length_exceeded',
      'string_above_max_length',
      'exceed_context_size_error',
      'context_window_exceeded',
    ]),
  ],
  [
    'content-policy',
    new Set(
      'content_policy_violation content_filter responsibleaipolicyviolation data_inspection_failed datainspectionfailed moderation_blocked content_moderation sensitive_words_detected cyber_policy invalid_prompt bio_policy'.split(
        ' ',
      ),
    ),
  ],
  [
    'no-credit',
    new Set(
      'insufficient_quota credit_balance_exhausted billing_error billing_not_active billing_hard_limit_reached insufficient_balance insufficient_user_quota insufficient_credits arrearage exceeded_current_quota_error quota_exceeded'.split(
        ' ',
      ),
    ),
  ],
  [
    'credentials',
    new Set(
      'authentication_error invalid_api_key api_key_invalid permission_error unauthenticated permission_denied account_deactivated unsupported_country_region_territory request_forbidden accessdeniedexception unrecognizedclientexception expiredtokenexception invalid_authentication_error'.split(
        ' ',
      ),
    ),
  ],
  [
    'rate-limit',
    new Set(
      'rate_limit_error rate_limit_exceeded resource_exhausted slow_down too_many_requests throttlingexception toomanyrequestsexception servicequotaexceededexception rate_limit_reached_error'.split(
        ' ',
      ),
    ),
  ],
  [
    'overloaded',
    new Set(
      'overloaded_error server_is_overloaded service_unavailable service_unavailable_error unavailable engine_overloaded engine_overloaded_error serviceunavailableexception model_overloaded'.split(
        ' ',
      ),
    ),
  ],
  ['timeout', new Set(['timeout_error', 'deadline_exceeded', 'upstream_timeout', 'modeltimeoutexception'])],
  ['too-large', new Set(['request_too_large'])],
  [
    'not-found',
    new Set([
      'not_found_error',
      'model_not_found',
      'not_found',
      'resourcenotfoundexception',
      'deployment_not_found',
      'deploymentnotfound',
    ]),
  ],
  [
    'bad-request',
    new Set([
      'invalid_request_error',
      'invalid_argument',
      'bad_request',
      'failed_precondition',
      'out_of_range',
      'validationexception',
      'unprocessable_entity',
    ]),
  ],
];

const contextTexts = [
  'maximum context length',
  'prompt is too long',
  'exceeds the maximum number of tokens',
  'input token count',
  'exceed context limit',
  'exceeds the context window',
  'exceeds the available context size',
  'input is too long for requested model',
  'context_length_exceeded',
];
const policyTexts = [
  'content management policy',
  'content policy',
  'usage policies',
  'usage policy',
  'safety system',
  'content exists risk',
  'content filtered due to',
];
const creditTexts = [
  'credit balance is too low',
  'insufficient balance',
  'insufficient credit',
  'out of credits',
];
const credentialTexts = [
  'api key not valid',
  'api key expired',
  'invalid api key',
  'incorrect api key',
  'user location is not supported',
];

/**
 * The GatewayError (origin `upstream`) that the client shall see for an upstream's error answer, or for an error body or event under
 * status 200. `retryable` says whether another channel or a later try may succeed; `cause` is an {@link UpstreamFailure}.
 */
export function upstreamError(status: number, body: string, headers: Headers = {}): GatewayError {
  const shape = withKind(readErrorShape(body), header(headers, 'x-amzn-errortype'));
  const fault = faultOf(status, shape);
  const answer = answers[fault];
  const told = fault === 'conversation' ? conversationAnswer(status, shape) : {};
  const message = redact(shape.message);
  const cause: UpstreamFailure = { fault, status, message };
  const retryAfter =
    fault === 'rate-limit' || fault === 'overloaded' || fault === 'timeout'
      ? retryAfterOf(headers, shape)
      : undefined;
  const details: ErrorDetails = {
    origin: 'upstream',
    retryable: answer.retryable,
    cause,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(shape.param !== undefined && fault === 'bad-request' ? { param: redact(shape.param) } : {}),
    ...(shape.errorCode !== undefined && (fault === 'bad-request' || fault === 'conversation')
      ? { details: { error_code: shape.errorCode } }
      : {}),
    ...(told.status === undefined ? {} : { status: told.status }),
  };
  return new GatewayError(
    told.code ?? answer.code,
    answer.hide || message === '' ? answer.message : message,
    details,
  );
}

/** Where the kind of an error stands in a header, as `ThrottlingException:http://…` or alone. */
function withKind(shape: ErrorShape, kind: string | undefined): ErrorShape {
  const word = kind?.split(':')[0]?.toLowerCase() ?? '';
  return word === '' ? shape : { ...shape, words: [...shape.words, word] };
}

/** The statuses of a lost thread (404) and of one that is busy (409) are the message: clients send everything again, or later. */
function conversationAnswer(
  status: number,
  shape: ErrorShape,
): { readonly code?: ErrorCode; readonly status?: number } {
  const stated = status >= 400 ? status : shape.status;
  if (stated === 404) return { code: 'not_found', status: stated };
  return stated === 409 ? { code: 'conflict', status: stated } : {};
}

function faultOf(status: number, shape: ErrorShape): UpstreamFault {
  const text = shape.message.slice(0, 4000).toLowerCase();
  const word = wordsOf.find(([, words]) => shape.words.some((candidate) => words.has(candidate)))?.[0];
  const stated = status >= 400 ? status : shape.status;
  if (stated !== undefined && stated < 500 && shape.errorCode?.startsWith('thread_')) return 'conversation';
  // A request too long or too bold is the client's to mend, under whatever 4xx (or inside a 200) it is told.
  if (stated === undefined || stated < 500) {
    if (word === 'context-length' || contextTexts.some((part) => text.includes(part)))
      return 'context-length';
    if (word === 'content-policy' || (isRefusal(stated) && policyTexts.some((part) => text.includes(part))))
      return 'content-policy';
  }
  if (word === 'no-credit' || creditTexts.some((part) => text.includes(part))) return 'no-credit';
  if (stated === undefined) return word ?? 'failed';
  if (isRefusal(stated)) {
    if (word === 'credentials' || credentialTexts.some((part) => text.includes(part))) return 'credentials';
    if (word === 'not-found' || word === 'rate-limit' || word === 'overloaded' || word === 'too-large')
      return word;
  }
  if (stated >= 500 && (word === 'overloaded' || word === 'timeout')) return word;
  return faultOfStatus(stated);
}

function isRefusal(status: number | undefined): boolean {
  return status === undefined || status === 400 || status === 403 || status === 422;
}

function faultOfStatus(status: number): UpstreamFault {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return 'credentials';
    case 402:
      return 'no-credit';
    case 404:
    case 405:
    case 410:
      return 'not-found';
    case 408:
    case 409:
    case 425:
    case 424:
    case 499:
      return 'failed';
    case 413:
      return 'too-large';
    case 429:
      return 'rate-limit';
    case 503:
    case 529:
      return 'overloaded';
    case 504:
    case 522:
    case 524:
      return 'timeout';
    default:
      return status < 500 ? 'bad-request' : 'failed';
  }
}

/**
 * Seconds, also parts of one, from `retry-after-ms`, `retry-after` (seconds or an HTTP date), the body's `RetryInfo`, or the headers that
 * tell when a limit that is used up is free again.
 */
function retryAfterOf(headers: Headers, shape: ErrorShape): number | undefined {
  const milliseconds = Number(header(headers, 'retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return bounded(milliseconds / 1000);
  const after = header(headers, 'retry-after');
  if (after !== undefined) {
    const count = Number(after);
    if (Number.isFinite(count) && count >= 0) return bounded(count);
    const date = Date.parse(after);
    // A date is no finer than a second, and the clocks need not agree.
    if (!Number.isNaN(date)) return bounded(Math.max(1, (date - Date.now()) / 1000));
  }
  const delay = shape.retryDelay ?? resetOf(headers);
  return delay === undefined ? undefined : bounded(delay);
}

/** Seconds until all limits are free that have nothing remaining: `…ratelimit…remaining…` with its `…reset…`. */
function resetOf(headers: Headers): number | undefined {
  const waits = Object.keys(headers)
    .filter((name) => /ratelimit.*remaining/.test(name) && header(headers, name) === '0')
    .map((name) => secondsUntil(header(headers, name.replace('remaining', 'reset')) ?? ''))
    .filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : waits.reduce((most, wait) => Math.max(most, wait));
}

const units: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1, ms: 0.001 };

/** A time as providers tell it: `6m0s`, `20ms`, seconds, seconds or milliseconds since 1970, or an RFC 3339 date. */
function secondsUntil(told: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(told)) {
    const count = Number(told);
    if (count < 1e9) return count;
    return (count < 1e11 ? count * 1000 : count) / 1000 - Date.now() / 1000;
  }
  if (/^(\d+(\.\d+)?(d|h|ms|m|s))+$/.test(told)) {
    const parts = told.matchAll(/([\d.]+)(d|h|ms|m|s)/g);
    return [...parts].reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0);
  }
  const date = Date.parse(told);
  return Number.isNaN(date) ? undefined : (date - Date.now()) / 1000;
}

/** Between a moment that no provider notices, and a day. */
function bounded(seconds: number): number {
  return Math.min(Math.max(0.02, seconds), 86_400);
}

function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  const text = typeof value === 'string' ? value : value?.[0];
  return text === undefined || text.trim() === '' ? undefined : text.trim();
}
