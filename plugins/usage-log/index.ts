/** Records each call in the usage log. */
import { z } from 'zod';
import {
  caller,
  maskSecrets,
  type ApiKey,
  type JsonObject,
  type Operation,
  type AttemptEvent,
  type FailureCause,
} from 'sluice';
import {
  definePlugin,
  accountOf,
  failureCause,
  rounded,
  type Call,
  type InternalTools,
} from 'sluice/internal';
import type { Account, UsageRecord } from './core-types.ts';
import { capturedRequest, ReplyCapture } from './capture.ts';
import { isRule, redactor } from './redact.ts';
import { startTending } from './retention.ts';

const options = z.strictObject({
  /** Stores request and response bodies with the records, without text that looks like a credential and without matches of `redact`. */
  capture: z
    .union([
      z.literal(false),
      z.strictObject({
        request: z.boolean().default(true).describe('stores request bodies'),
        response: z.boolean().default(true).describe('stores response bodies'),
        limit: z
          .int()
          .min(1)
          .max(1024 * 1024)
          .default(64 * 1024)
          .describe('maximum bytes of each stored body; the rest is cut off'),
        redact: z
          .array(
            z
              .string()
              .refine(isRule, 'must be the path of a member such as "messages.*.content", or a "/pattern/"'),
          )
          .default([])
          .describe('paths of fields, and patterns of text, that are removed before a body is stored'),
      }),
    ])
    .default(false),
  retention: z
    .strictObject({
      days: z.number().min(0.01).max(36_500).default(90).describe('days for which records of calls are kept'),
      records: z
        .int()
        .min(0)
        .max(1_000_000_000)
        .default(5_000_000)
        .describe(
          'maximum number of records. The oldest are deleted first, even if they are younger than `days`',
        ),
      sumDays: z
        .number()
        .min(1)
        .max(36_500)
        .default(1_095)
        .describe('days for which hourly and daily sums are kept, which overviews and bills use'),
    })
    .refine(
      ({ days, sumDays }) => sumDays >= days,
      'sumDays must be at least days: lists find records by their sums',
    )
    .prefault({}),
  /** Records also model lists, and requests for objects that the gateway stores. */
  lists: z.boolean().default(false),
});

/**
 * Writes a usage record for every call, also for refused ones: key, operation and model, channel, usage, cost, outcome and duration. The
 * record and the charge are written in one transaction.
 */
export default definePlugin({
  name: 'usage-log',
  stage: 'observe',
  reads: 'usage',
  options,
  setup({ capture, retention, lists }, { usageLog, upkeep, log, notices, onClose }: InternalTools) {
    const redact = redactor(capture === false ? [] : capture.redact);
    startTending(usageLog, retention, upkeep, log, onClose);

    /** Adds the captured bodies. Logs errors and goes on, because a call must be charged even if its body cannot be captured. */
    const addBodies = (draft: Draft, call: Call, reply: ReplyCapture | undefined): void => {
      if (capture === false) return;
      try {
        const request = capture.request ? capturedRequest(call, capture.limit, redact) : undefined;
        const response = reply?.redacted(redact);
        if (request !== undefined) draft.request = request;
        if (response !== undefined) draft.response = response;
      } catch (error) {
        log.error({ id: call.id, error }, 'the bodies of a call could not be captured');
        notices.emit('end-of-call-failed');
      }
    };

    return function usageLogged(call: Call, next) {
      if (!lists && unlisted.has(call.operation)) return next(call);
      const account = accountOf(call);
      let reply: ReplyCapture | undefined;
      if (capture !== false && capture.response)
        account.watch(() => (reply = new ReplyCapture(capture.limit)));
      account.recordWith(() => {
        const draft = draftOf(call, account);
        addBodies(draft, call, reply);
        return draft;
      });
      return next(call);
    };
  },
});

const unlisted: ReadonlySet<Operation> = new Set<Operation>(['list-models', 'state']);

/** A record that is being built. */
type Draft = { -readonly [Member in keyof UsageRecord]: UsageRecord[Member] };

/** Returns the record without bodies. */
function draftOf(
  call: Call,
  { record, attempts, usage, cost, chargedMicroDollars, answeredBy, attribution }: Account,
): Draft {
  const { startedAt, error, firstMs } = record;
  // If all attempts failed, the record has the last one, so that the records of a channel show its failures.
  const attempt = record.attempt ?? record.failures((failed) => failed)?.at(-1);
  const draft: Draft = {
    id: record.id,
    at: Math.round(Date.now() - (performance.now() - startedAt)),
    ip: call.wire.ip,
    operation: call.operation,
    format: call.format.name,
    model: call.askedModel,
    stream: record.stream,
    status: record.status,
    ended: record.ending,
    input: usage?.input ?? 0,
    output: usage?.output ?? 0,
    cacheRead: usage?.cacheRead ?? 0,
    cacheWrite: usage?.cacheWrite ?? 0,
    reasoning: usage?.reasoning ?? 0,
    ms: rounded(record.ms),
  };
  if (cost !== undefined) {
    draft.microDollars = cost.microDollars;
    if (cost.price !== undefined) draft.price = cost.price;
  }
  // A model without a price may have one of the owners of the key.
  if (chargedMicroDollars !== undefined && (cost !== undefined || chargedMicroDollars > 0))
    draft.chargedMicroDollars = chargedMicroDollars;
  if (attribution?.tags !== undefined) draft.tags = attribution.tags;
  if (attribution?.endUser !== undefined) draft.endUser = attribution.endUser;
  const key = call.get(caller);
  const losses = record.losses();
  const failures = record.failures(attemptOf);
  if (key !== undefined) addOwners(draft, key);
  if (attempt !== undefined) {
    draft.channel = attempt.channel;
    draft.upstreamModel = attempt.model;
    if (attempt.format !== undefined) draft.upstreamFormat = attempt.format;
    if (attempt.passThrough !== undefined) draft.passThrough = attempt.passThrough;
  }
  if (attempt === undefined && answeredBy !== undefined) draft.channel = answeredBy;
  if (usage?.units !== undefined) draft.units = usage.units;
  if (usage?.estimated === true) draft.estimated = true;
  if (firstMs !== undefined) draft.firstMs = firstMs;
  if (attempts.firstAttemptAt !== undefined) draft.gatewayMs = rounded(attempts.firstAttemptAt - startedAt);
  if (error !== undefined) {
    draft.code = error.code;
    draft.reason = shownText(error.message, maxReason);
    const cause = shownCause(failureCause(error));
    if (cause !== undefined) draft.cause = cause;
  }
  if (losses !== undefined) draft.losses = losses;
  if (failures !== undefined) draft.attempts = failures;
  return draft;
}

/** Adds the key, and its owners at the time of the call. */
function addOwners(draft: Draft, { id, team, member, owners }: ApiKey): void {
  draft.keyId = id;
  if (team !== undefined) draft.team = team;
  if (member !== undefined) draft.member = member;
  const organisation = owners?.find(({ kind }) => kind === 'organisation')?.id;
  if (organisation !== undefined) draft.organisation = organisation;
}

/** Maximum number of characters of an error message, and of its cause: once for the call, and for each attempt. */
const maxReason = 2_000;
const maxCause = 1_000;
const maxAttemptCause = 300;

/** Maximum number of characters that are searched for secrets. Far more than are stored, so that no part of a secret remains at the end. */
const maxMasked = 20_000;

/** Returns the text without secrets, cut to the maximum length. Masks before it cuts, because a part of a secret does not look like one. */
function shownText(text: string, maxLength: number): string {
  const masked = maskSecrets(text.slice(0, maxMasked));
  return masked.length <= maxLength ? masked : `${masked.slice(0, maxLength - 1).toWellFormed()}…`;
}

function shownCause(cause: FailureCause | undefined, maxLength = maxCause): FailureCause | undefined {
  if (cause?.message === undefined) return cause;
  return { ...cause, message: shownText(cause.message, maxLength) };
}

function attemptOf({ channel, key, model, failure, cause }: AttemptEvent): JsonObject {
  const shown = shownCause(cause, maxAttemptCause);
  return {
    channel,
    ...(key === undefined ? {} : { key }),
    model,
    failure,
    ...(shown === undefined ? {} : { cause: { ...shown } }),
  };
}
