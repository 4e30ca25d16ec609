/**
 * Classifies a provider's error (context length, content policy, credentials, rate limit …) by its status, codes and message, and states
 * the client's error for each class.
 */
import type { ErrorCode } from '../../../sdk/errors.ts';
import type { UpstreamFault } from '../../../sdk/errors.ts';
import { setOf } from '../fields.ts';
import type { ErrorShape } from './shape.ts';

/** A class of upstream errors: the signs by which it is recognized, and the error that the client receives. */
interface Fault {
  /** Machine-readable codes of error bodies, in lower case. */
  readonly words?: ReadonlySet<string>;
  /** Parts of error messages, in lower case. */
  readonly texts?: readonly string[];
  readonly statuses?: readonly number[];
  readonly code: ErrorCode;
  /** Shown when the upstream gave no sentence, or always when `hide`. */
  readonly message: string;
  /** The upstream's message is about the operator's account and is hidden from the client. */
  readonly hide?: true;
  /** May another channel, or a later try, succeed? */
  readonly retryable: boolean;
}

/**
 * Errors of upstreams by the gateway's reaction to them. If several match, the first one counts. No code has the status 401, 402, 403 or
 * 404, because the client's key is valid even if the channel's is not.
 */
const table = {
  'context-length': {
    words: setOf(
      'context_length_exceeded string_above_max_length exceed_context_size_error context_window_exceeded',
    ),
    texts: [
      'maximum context length',
      'prompt is too long',
      'exceeds the maximum number of tokens',
      'input token count',
      'exceed context limit',
      'exceeds the context window',
      'exceeds the available context size',
      'input is too long for requested model',
      'context_length_exceeded',
    ],
    code: 'context_length_exceeded',
    message: 'The request is longer than the context of the model.',
    retryable: false,
  },
  'content-policy': {
    words: setOf(`
      content_policy_violation content_filter responsibleaipolicyviolation data_inspection_failed
      datainspectionfailed moderation_blocked content_moderation sensitive_words_detected cyber_policy
      invalid_prompt bio_policy
    `),
    texts: [
      'content management policy',
      'content policy',
      'usage policies',
      'usage policy',
      'safety system',
      'content exists risk',
      'content filtered due to',
    ],
    code: 'content_policy_violation',
    message: 'The request was refused by the content policy of the upstream.',
    retryable: false,
  },
  'no-credit': {
    words: setOf(`
      insufficient_quota credit_balance_exhausted billing_error billing_not_active
      billing_hard_limit_reached insufficient_balance insufficient_user_quota insufficient_credits
      arrearage exceeded_current_quota_error quota_exceeded
    `),
    texts: ['credit balance is too low', 'insufficient balance', 'insufficient credit', 'out of credits'],
    statuses: [402],
    code: 'no_available_channel',
    message: 'The channel for this model has no credit left at its provider.',
    hide: true,
    retryable: true,
  },
  credentials: {
    words: setOf(`
      authentication_error invalid_api_key api_key_invalid permission_error unauthenticated
      permission_denied account_deactivated unsupported_country_region_territory request_forbidden
      accessdeniedexception unrecognizedclientexception expiredtokenexception invalid_authentication_error
    `),
    texts: [
      'api key not valid',
      'api key expired',
      'invalid api key',
      'incorrect api key',
      'user location is not supported',
    ],
    statuses: [401, 403, 407],
    code: 'upstream_error',
    message: 'The upstream refused the credentials of the channel.',
    hide: true,
    retryable: true,
  },
  'rate-limit': {
    words: setOf(`
      rate_limit_error rate_limit_exceeded resource_exhausted slow_down too_many_requests
      throttlingexception toomanyrequestsexception servicequotaexceededexception rate_limit_reached_error
    `),
    statuses: [429],
    code: 'rate_limit_exceeded',
    message: 'The upstream rate-limits requests for this model. Retry later.',
    retryable: true,
  },
  overloaded: {
    words: setOf(`
      overloaded_error server_is_overloaded service_unavailable service_unavailable_error unavailable
      engine_overloaded engine_overloaded_error serviceunavailableexception model_overloaded
    `),
    statuses: [503, 529],
    code: 'server_is_overloaded',
    message: 'The upstream is overloaded.',
    retryable: true,
  },
  timeout: {
    words: setOf('timeout_error deadline_exceeded upstream_timeout modeltimeoutexception'),
    statuses: [504, 522, 524],
    code: 'upstream_timeout',
    message: 'The upstream took too long.',
    retryable: true,
  },
  'too-large': {
    words: setOf('request_too_large'),
    statuses: [413],
    code: 'request_too_large',
    message: 'The request is too large for the upstream.',
    retryable: false,
  },
  'not-found': {
    words: setOf(`
      not_found_error model_not_found not_found resourcenotfoundexception deployment_not_found
      deploymentnotfound
    `),
    statuses: [404, 405, 410],
    code: 'no_available_channel',
    message: 'The upstream does not know this model or endpoint.',
    hide: true,
    retryable: true,
  },
  'bad-request': {
    words: setOf(`
      invalid_request_error invalid_argument bad_request failed_precondition out_of_range
      validationexception unprocessable_entity
    `),
    code: 'invalid_request',
    message: 'The upstream refused the request.',
    retryable: false,
  },
  // The provider's stored conversation differs from what the client expects. Clients resend the history when they receive this error.
  conversation: {
    code: 'invalid_request',
    message: 'The upstream cannot continue this conversation.',
    retryable: false,
  },
  failed: {
    statuses: [408, 409, 424, 425, 499],
    code: 'upstream_error',
    message: 'The upstream failed.',
    retryable: true,
  },
} satisfies Readonly<Record<UpstreamFault, Fault>>;

/** All classes of upstream errors. */
export const faults: Readonly<Record<UpstreamFault, Fault>> = table;

const names = Object.keys(table) as readonly UpstreamFault[];

/** Returns the class of an error, by its codes and message, and by its status where that is more precise. */
export function faultOf(status: number, shape: ErrorShape): UpstreamFault {
  const text = shape.message.slice(0, 4000).toLowerCase();
  const tells = (fault: UpstreamFault): boolean =>
    faults[fault].texts?.some((part) => text.includes(part)) === true;
  const word = names.find((name) => shape.words.some((candidate) => faults[name].words?.has(candidate)));
  const stated = status >= 400 ? status : shape.status;
  if (stated !== undefined && stated < 500 && shape.errorCode?.startsWith('thread_')) return 'conversation';
  // The client must change a request that is too long or against the content policy, whatever status below 500 the provider reports.
  if (stated === undefined || stated < 500) {
    if (word === 'context-length' || tells('context-length')) return 'context-length';
    if (word === 'content-policy' || (isRefusal(stated) && tells('content-policy'))) return 'content-policy';
  }
  if (word === 'no-credit' || tells('no-credit')) return 'no-credit';
  if (stated === undefined) return word ?? 'failed';
  if (isRefusal(stated)) {
    if (word === 'credentials' || tells('credentials')) return 'credentials';
    if (word === 'not-found' || word === 'rate-limit' || word === 'overloaded' || word === 'too-large')
      return word;
  }
  if (stated >= 500 && (word === 'overloaded' || word === 'timeout')) return word;
  const byStatus = names.find((name) => faults[name].statuses?.includes(stated));
  return byStatus ?? (stated < 500 ? 'bad-request' : 'failed');
}

function isRefusal(status: number | undefined): boolean {
  return status === undefined || status === 400 || status === 403 || status === 422;
}
