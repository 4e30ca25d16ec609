import { setOf } from '../fields.ts';
import type { ErrorShape } from './shape.ts';

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

/** Words that say more than the status beside them: each fault with the machine-readable words that mean it. */
const wordsOf: readonly (readonly [UpstreamFault, ReadonlySet<string>])[] = [
  [
    'context-length',
    setOf(
      'context_length_exceeded string_above_max_length exceed_context_size_error context_window_exceeded',
    ),
  ],
  [
    'content-policy',
    setOf(`
      content_policy_violation content_filter responsibleaipolicyviolation data_inspection_failed
      datainspectionfailed moderation_blocked content_moderation sensitive_words_detected cyber_policy
      invalid_prompt bio_policy
    `),
  ],
  [
    'no-credit',
    setOf(`
      insufficient_quota credit_balance_exhausted billing_error billing_not_active
      billing_hard_limit_reached insufficient_balance insufficient_user_quota insufficient_credits
      arrearage exceeded_current_quota_error quota_exceeded
    `),
  ],
  [
    'credentials',
    setOf(`
      authentication_error invalid_api_key api_key_invalid permission_error unauthenticated
      permission_denied account_deactivated unsupported_country_region_territory request_forbidden
      accessdeniedexception unrecognizedclientexception expiredtokenexception invalid_authentication_error
    `),
  ],
  [
    'rate-limit',
    setOf(`
      rate_limit_error rate_limit_exceeded resource_exhausted slow_down too_many_requests
      throttlingexception toomanyrequestsexception servicequotaexceededexception rate_limit_reached_error
    `),
  ],
  [
    'overloaded',
    setOf(`
      overloaded_error server_is_overloaded service_unavailable service_unavailable_error unavailable
      engine_overloaded engine_overloaded_error serviceunavailableexception model_overloaded
    `),
  ],
  ['timeout', setOf('timeout_error deadline_exceeded upstream_timeout modeltimeoutexception')],
  ['too-large', setOf('request_too_large')],
  [
    'not-found',
    setOf(`
      not_found_error model_not_found not_found resourcenotfoundexception deployment_not_found
      deploymentnotfound
    `),
  ],
  [
    'bad-request',
    setOf(`
      invalid_request_error invalid_argument bad_request failed_precondition out_of_range
      validationexception unprocessable_entity
    `),
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

/** What went wrong, by what the upstream says, and by its status where that says more. */
export function faultOf(status: number, shape: ErrorShape): UpstreamFault {
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
