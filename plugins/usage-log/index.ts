import { z } from 'zod';
import { caller, definePlugin, observe, type JsonObject, type Operation, type Usage } from 'sluice';
import {
  askedAt,
  charge,
  failureCause,
  followDetached,
  maskSecrets,
  settles,
  type Amounts,
  type AttemptEvent,
  type Call,
  type Charge,
  type FailureCause,
  type InternalTools,
  type Next,
  type Prices,
  type UsageRecord,
} from 'sluice/internal';
import { CallRecord, doneInNextTurn, inNextTurn, recorded, rounded } from '../_record.ts';
import { capturedRequest, ReplyCapture } from './capture.ts';
import { isRule, redactor } from './redact.ts';
import { startTending } from './retention.ts';

const options = z.strictObject({
  /** Whether bodies are kept with the records, for whoever may read them: no secret that looks like one, and nothing that `redact` names. */
  capture: z
    .union([
      z.literal(false),
      z.strictObject({
        request: z.boolean().default(true),
        response: z.boolean().default(true),
        limit: z
          .int()
          .min(1)
          .max(1024 * 1024)
          .default(64 * 1024)
          .describe('bytes of each body'),
        redact: z
          .array(
            z
              .string()
              .refine(isRule, 'must be the path of a member such as "messages.*.content", or a "/pattern/"'),
          )
          .default([]),
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
        .describe('maximum number of records; the oldest go first, also when they are younger than days'),
      sumDays: z
        .number()
        .min(1)
        .max(36_500)
        .default(1_095)
        .describe('days for which sums of hours and days are kept, from which overviews and bills are made'),
    })
    .refine(
      ({ days, sumDays }) => sumDays >= days,
      'sumDays must be at least days: lists find records by their sums',
    )
    .prefault({}),
  /** Whether model lists, and answers from what the gateway keeps, are recorded too. */
  lists: z.boolean().default(false),
});

/**
 * The operator finds a record of every call in the usage log, also of those that were refused: who called, what was asked, who answered,
 * what it used and cost, how it ended and how long it took. It is written in one transaction with what the call is charged.
 */
export default definePlugin({
  name: 'usage-log',
  stage: 'observe',
  reads: 'usage',
  options,
  setup(
    { capture, retention, lists },
    { bookkeeper, prices, usageLog, upkeep, log, notices, onClose }: InternalTools,
  ) {
    const redact = redactor(capture === false ? [] : capture.redact);
    startTending(usageLog, retention, upkeep, log, onClose);
    onClose(() => doneInNextTurn());

    const failed = (error: unknown, { call }: CallRecord, what: string): void => {
      log.error({ id: call.id, error }, what);
      notices.emit('end-of-call-failed');
    };

    /** Adds the captured bodies. A body that cannot be captured must not keep its call from being charged. */
    const addBodies = (draft: Draft, { record, reply }: Ended): void => {
      if (capture === false) return;
      try {
        const request = capture.request ? capturedRequest(record.call, capture.limit, redact) : undefined;
        const response = reply?.told(redact);
        if (request !== undefined) draft.request = request;
        if (response !== undefined) draft.response = response;
      } catch (error) {
        failed(error, record, 'the bodies of a call could not be captured');
      }
    };

    const book = (ended: Ended): void => {
      const { record } = ended;
      const { call } = record;
      const charged = call.get(charge);
      const draft = draftOf(record, charged, prices);
      addBodies(draft, ended);
      const settle = call.get(settles) ?? bookkeeper.book;
      settle({
        charged: charged?.amounts ?? nothing,
        record: draft,
        ...(draft.keyId === undefined ? {} : { keyId: draft.keyId }),
        ...(charged?.reservation === undefined ? {} : { reservation: charged.reservation }),
      });
    };

    // Other jobs at the end of the call, and a reply that is let go of late, have said by the next turn what it is charged.
    const bookSoon = inNextTurn(book, (error, { record }) => {
      failed(error, record, 'a call could not be recorded');
      const reservation = record.call.get(charge)?.reservation;
      if (reservation !== undefined) bookkeeper.release(reservation);
    });

    const replyCapture = (): ReplyCapture | undefined =>
      capture !== false && capture.response ? new ReplyCapture(capture.limit) : undefined;

    return function usageLogged(call: Call, next) {
      if (!lists && unlisted.has(call.operation)) return next(call);
      let goesOn = false;
      followDetached(call, (own) => {
        // One record for both: what the client got at once is only the beginning of it.
        goesOn = true;
        const run = new CallRecord(own, call.startedAt);
        const reply = replyCapture();
        return {
          event(event) {
            run.event(event);
            reply?.event(event);
          },
          end(how, error) {
            run.end(how, error);
            bookSoon({ record: run, reply });
          },
        };
      });
      const reply = replyCapture();
      return recorded(call, reply === undefined ? next : watched(next, reply), (record) => {
        if (!goesOn) bookSoon({ record, reply });
      });
    };
  },
});

/** A call that has ended, with what was kept of its reply. */
interface Ended {
  readonly record: CallRecord;
  readonly reply: ReplyCapture | undefined;
}

const nothing: Amounts = { microDollars: 0, tokens: 0 };

const unlisted: ReadonlySet<Operation> = new Set<Operation>(['list-models', 'state']);

function watched(next: Next, reply: ReplyCapture): Next {
  return async (call: Call) => (await next(call)).pipe(observe(reply));
}

/** A record that is being put together. */
type Draft = { -readonly [Member in keyof UsageRecord]: UsageRecord[Member] };

/** The record without bodies. */
function draftOf(record: CallRecord, charged: Charge | undefined, prices: Prices): Draft {
  const { call, startedAt, error, firstMs } = record;
  // Where all have failed the last one stands for the call, so that the records of a channel show its failures.
  const attempt = record.attempt ?? record.failures((failed) => failed)?.at(-1);
  const usage = charged === undefined ? record.usage : charged.usage;
  const draft: Draft = {
    id: call.id,
    at: Math.round(Date.now() - (performance.now() - startedAt)),
    ip: call.wire.ip,
    operation: call.operation,
    format: call.format.name,
    model: call.askedModel,
    stream: call.stream,
    status: record.status,
    ended: record.ended === 'error' && record.begun ? 'interrupted' : record.ended,
    input: usage?.input ?? 0,
    output: usage?.output ?? 0,
    cacheRead: usage?.cacheRead ?? 0,
    cacheWrite: usage?.cacheWrite ?? 0,
    reasoning: usage?.reasoning ?? 0,
    ms: rounded(record.ms),
    ...costOf(record, charged, usage, prices),
  };
  const keyId = call.get(caller)?.id;
  const asked = call.get(askedAt);
  const losses = record.losses();
  const attempts = record.failures(attemptOf);
  if (keyId !== undefined) draft.keyId = keyId;
  if (attempt !== undefined) {
    draft.channel = attempt.channel;
    draft.upstreamModel = attempt.model;
    if (attempt.format !== undefined) draft.upstreamFormat = attempt.format;
    if (attempt.passThrough !== undefined) draft.passThrough = attempt.passThrough;
  }
  if (usage?.units !== undefined) draft.units = usage.units;
  if (usage?.estimated === true) draft.estimated = true;
  if (firstMs !== undefined) draft.firstMs = firstMs;
  if (asked !== undefined) draft.gatewayMs = rounded(asked - startedAt);
  if (error !== undefined) {
    draft.code = error.code;
    draft.reason = shownText(error.message, maxReason);
    const cause = shownCause(failureCause(error));
    if (cause !== undefined) draft.cause = cause;
  }
  if (losses !== undefined) draft.losses = losses;
  if (attempts !== undefined) draft.attempts = attempts;
  return draft;
}

/** Maximum number of characters of a failure's sentence, and of what lies behind it: once for the call, and for each attempt. */
const maxReason = 2_000;
const maxCause = 1_000;
const maxAttemptCause = 300;

/** Maximum number of characters that are searched for secrets. Far more than is kept, so that no part of a secret is left at the end. */
const maxMasked = 20_000;

/** Returns the text without secrets and at most so long. Masks first, because a part of a secret does not look like one. */
function shownText(text: string, maxLength: number): string {
  const masked = maskSecrets(text.slice(0, maxMasked));
  return masked.length <= maxLength ? masked : `${masked.slice(0, maxLength - 1).toWellFormed()}…`;
}

function shownCause(cause: FailureCause | undefined, maxLength = maxCause): FailureCause | undefined {
  if (cause?.message === undefined) return cause;
  return { ...cause, message: shownText(cause.message, maxLength) };
}

/** As it was charged; what it would have cost where nothing charges. */
function costOf(
  { model, attempt }: CallRecord,
  charged: Charge | undefined,
  usage: Usage | undefined,
  prices: Prices,
): Pick<UsageRecord, 'microDollars' | 'price'> {
  if (usage === undefined) return { microDollars: charged?.amounts.microDollars ?? 0 };
  if (charged === undefined) return prices.cost(model, usage, attempt) ?? {};
  const { price, amounts } = charged;
  return price === undefined ? {} : { price, microDollars: amounts.microDollars };
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
