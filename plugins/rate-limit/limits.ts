/** Runs calls within limits of requests per minute, tokens per minute and concurrency, for API keys, models and channels. */
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  addReplyHeaders,
  callKey,
  GatewayError,
  type Call,
  type GatewayEvent,
  type Next,
  type PluginTools,
  type RateRule,
  type Rates,
  type RateStanding,
  type RateVerdict,
  type SlotRule,
  type Target,
} from 'sluice';
import { estimateTokens, requestsFor } from '../quota/estimate.ts';

/** Schema of limits in options of plugins, which have the same names as in API keys. */
export const limitsSchema = z.strictObject({
  requestsPerMinute: z.int().min(1).optional().describe('maximum number of calls in a minute'),
  tokensPerMinute: z
    .int()
    .min(1)
    .optional()
    .describe(
      'maximum number of input and output tokens in a minute. A running call counts with its estimated input and its output limit, a completed call with its usage',
    ),
  concurrency: z
    .int()
    .min(1)
    .optional()
    .describe('maximum number of calls that run at the same time. A stream runs until its last event'),
});

/** Output tokens that are counted beforehand for a call that sets no limit of its own. */
export const outputGuess = z
  .int()
  .min(0)
  .default(1_000)
  .describe('output tokens that a running call counts with if it sets no output limit');

/** Limits, and the subject that they apply to. */
export interface Limited {
  /** Name under which the counts are stored: `key:key_…`. */
  readonly subject: string;
  /** Subject of the error message: `This API key`. */
  readonly who: string;
  readonly limits: {
    readonly requestsPerMinute?: number | undefined;
    readonly tokensPerMinute?: number | undefined;
    readonly concurrency?: number | undefined;
  };
}

/** True when at least one limit is set. */
export function limitsAnything({ limits }: Limited): boolean {
  return (
    limits.requestsPerMinute !== undefined ||
    limits.tokensPerMinute !== undefined ||
    limits.concurrency !== undefined
  );
}

/** True for a call that counts towards limits: those that reach no model, such as lists, do not. */
export function reachesModel({ operation }: Pick<Call, 'operation'>): boolean {
  return operation !== 'list-models' && operation !== 'state';
}

/** Options of a plugin that limits calls. */
export interface LimiterOptions {
  /** Output tokens counted beforehand where a request sets no limit. */
  readonly output: number;
  /** The targets to which a call may go. */
  readonly targets: (call: Call) => readonly Target[];
  /** Whose fault a refusal is: one of the gateway's lets routing try another channel. Callers do not see such limits. */
  readonly origin: 'client' | 'gateway';
}

/** Runs a call within limits, as {@link runLimited} does. */
export type Limiter = (
  call: Call,
  next: Next,
  limited: readonly Limited[],
) => Promise<Observable<GatewayEvent>>;

/** Returns a function that runs calls within limits, counted by the rates of the gateway. */
export function createLimiter(
  { rates, isSingleChoice }: Pick<PluginTools, 'rates' | 'isSingleChoice'>,
  { output, targets, origin }: LimiterOptions,
): Limiter {
  const options: LimitOptions = {
    rates,
    output,
    origin,
    requests: (call) => requestsFor(call, targets(call), isSingleChoice),
  };
  return (call, next, limited) => runLimited(call, next, limited, options);
}

/** Options that are the same for all calls of a plugin. */
interface LimitOptions {
  readonly rates: Rates;
  /** Output tokens counted beforehand where a request sets no limit. */
  readonly output: number;
  /** The most requests to providers in which a call is sent. */
  readonly requests: (call: Call) => number;
  /** Whose fault a refusal is: one of the gateway's lets routing try another channel. Callers do not see such limits. */
  readonly origin: 'client' | 'gateway';
}

/** Counts the call against all limits at once and runs it, or throws 429. Permits and unused tokens are released when the call has ended. */
async function runLimited(
  call: Call,
  next: Next,
  limited: readonly Limited[],
  options: LimitOptions,
): Promise<Observable<GatewayEvent>> {
  const { rules, slots, tokens } = rulesOf(call, limited, options);
  const verdict = await options.rates.take(rules, slots);
  if (options.origin === 'client') reportStandings(call, verdict);
  const { grant } = verdict;
  if (grant === undefined) throw refusal(call, limited, verdict, options);

  let over = false;
  const settle = (used: number | undefined): void => {
    if (over) return;
    over = true;
    grant.release();
    if (used === undefined) return;
    for (const { subject, limit, cost } of tokens) {
      const difference = used - Math.min(cost, limit);
      if (difference !== 0) grant.correct(subject, difference);
    }
  };
  // The reported usage, or else the charge, which is estimated from the response. Without either the estimate stays.
  call.onUsedTokens(settle);
  try {
    return await next(call);
  } catch (error) {
    settle(0);
    throw error;
  }
}

/** Rules of some limits without the cost of a call. Built once, because they are used several times for each call. */
interface Rules {
  readonly requests: readonly RateRule[];
  readonly tokens: readonly Pick<RateRule, 'subject' | 'limit'>[];
  readonly slots: readonly SlotRule[];
}

const compiled = new WeakMap<readonly Limited[], Rules>();

function compile(all: readonly Limited[]): Rules {
  const requests: RateRule[] = [];
  const tokens: Pick<RateRule, 'subject' | 'limit'>[] = [];
  const slots: SlotRule[] = [];
  for (const { subject, limits } of all) {
    const { requestsPerMinute, tokensPerMinute, concurrency } = limits;
    if (requestsPerMinute !== undefined)
      requests.push({ subject: `${subject}:requests`, limit: requestsPerMinute, cost: 1 });
    if (tokensPerMinute !== undefined) tokens.push({ subject: `${subject}:tokens`, limit: tokensPerMinute });
    if (concurrency !== undefined) slots.push({ subject: `${subject}:calls`, limit: concurrency });
  }
  return { requests, tokens, slots };
}

function rulesOf(call: Call, limited: readonly Limited[], { output, requests, origin }: LimitOptions) {
  let known = compiled.get(limited);
  if (known === undefined) compiled.set(limited, (known = compile(limited)));
  // A call of a client counts as one request. For a channel's account each request to the provider counts.
  const rules =
    origin === 'gateway'
      ? known.requests.map((rule) => ({ ...rule, cost: requests(call) }))
      : [...known.requests];
  const { slots } = known;
  if (known.tokens.length === 0 || call.operation === 'count-tokens' || call.operation === 'tool')
    return { rules, slots, tokens: [] };
  const cost = estimateTokens(call, output, requests(call));
  const tokens = known.tokens.map(({ subject, limit }): RateRule => ({ subject, limit, cost }));
  for (const rule of tokens) rules.push(rule);
  return { rules, slots, tokens };
}

/** The tightest limits of a call so far, because several plugins may have limits. */
const standings = callKey<readonly RateStanding[]>('rate standings');

function reportStandings(call: Call, { states, allowed, retryMs }: RateVerdict): void {
  if (call.format.rateHeaders === undefined || states.length === 0) return;
  const before = call.get(standings);
  let requests = before?.find(({ counts }) => counts === 'requests');
  let tokens = before?.find(({ counts }) => counts === 'tokens');
  for (const { subject, limit, remaining, resetMs } of states)
    if (subject.endsWith(':tokens')) {
      if (tokens === undefined || remaining < tokens.remaining)
        tokens = { counts: 'tokens', limit, remaining, resetMs };
    } else if (requests === undefined || remaining < requests.remaining)
      requests = { counts: 'requests', limit, remaining, resetMs };
  const reported = [requests, tokens].filter((one) => one !== undefined);
  call.set(standings, reported);
  addReplyHeaders(call, call.format.rateHeaders(reported, allowed ? undefined : retryMs));
}

function refusal(
  call: Call,
  limited: readonly Limited[],
  { exceeded, retryMs, degraded }: RateVerdict,
  { origin, output, requests }: LimitOptions,
): GatewayError {
  const retryAfter = Math.max(1, Math.ceil(retryMs / 1_000));
  const cut = exceeded?.lastIndexOf(':') ?? -1;
  const one = limited.find(({ subject }) => subject === exceeded?.slice(0, cut));
  if (one === undefined || exceeded === undefined) {
    return new GatewayError(
      'server_is_overloaded',
      degraded === true
        ? 'The limits of this call cannot be checked at the moment. Try again soon.'
        : 'This call could not be admitted.',
      { retryAfter },
    );
  }
  const { who, limits } = one;
  const sentences: Readonly<Record<string, string>> = {
    requests: `${who} may be used for ${limits.requestsPerMinute} requests a minute. Try again in ${retryAfter} s.`,
    tokens: `${who} may be used for ${limits.tokensPerMinute} tokens a minute, and this request may need ${estimateTokens(call, output, requests(call))}. Try again in ${retryAfter} s.`,
    calls: `${who} may be used for ${limits.concurrency} calls at the same time. Try again when one of them has ended.`,
  };
  return new GatewayError(
    'rate_limit_exceeded',
    sentences[exceeded.slice(cut + 1)] ?? `${who} has reached a limit.`,
    {
      origin,
      retryAfter,
    },
  );
}
