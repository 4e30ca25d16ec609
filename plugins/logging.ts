/** Writes a line to the log for each call. */
import { z } from 'zod';
import { caller, definePlugin, type AttemptEvent, type Call, type CallResponse, type Usage } from 'sluice';
import { clientRequestId } from './request-id.ts';

const options = z.strictObject({
  /** Logs successful calls too. */
  successes: z.boolean().default(true),
  /** Level of log lines about successful calls. */
  level: z.enum(['debug', 'info']).default('info'),
});

/**
 * Writes one log line for each call that has ended, also for calls that were refused before their bodies were read: key, operation and
 * model, channel, outcome, usage and duration. Never logs content of requests or responses.
 */
export default definePlugin({
  name: 'logging',
  stage: 'observe',
  options,
  setup({ successes, level }, { log }) {
    return function logging(call, next) {
      // The response to the client, also where the call continues without the client.
      const { response } = call;
      call.onEnd(() => {
        const trouble = troubleOf(response);
        if (trouble !== undefined) log[trouble](fieldsOf(call, response), sentenceOf(response));
        else if (successes) call.afterwards(() => log[level](fieldsOf(call, response), sentenceOf(response)));
      });
      return next(call);
    };
  },
});

/** Returns the level of a line about a failed call; undefined for a successful call. */
function troubleOf({ ended, error }: CallResponse): 'info' | 'warn' | 'error' | undefined {
  if (ended === 'complete') return undefined;
  if (error?.code === 'internal_error') return 'error';
  return error === undefined || error.origin === 'client' ? 'info' : 'warn';
}

function sentenceOf({ ended, error }: CallResponse): string {
  if (ended === 'complete') return 'a call was answered';
  if (ended === 'left') return 'a client left its call';
  return error?.origin === 'client' ? 'a call was refused' : 'a call failed';
}

function fieldsOf(call: Call, response: CallResponse): object {
  const { model, attempt, usage, error } = response;
  const { askedModel } = call;
  const inside = error?.code === 'internal_error';
  // All members in one order, also undefined ones, because objects of one shape are created and written fastest.
  return {
    id: call.id,
    clientId: call.get(clientRequestId),
    parent: call.parent?.id,
    keyId: call.get(caller)?.id,
    ip: call.wire.ip,
    format: call.format.name,
    operation: call.operation,
    model: askedModel || undefined,
    modelInForce: model === askedModel ? undefined : model,
    channel: attempt?.channel,
    upstreamModel: attempt?.model === model ? undefined : attempt?.model,
    upstreamFormat: attempt?.passThrough === true ? undefined : attempt?.format,
    passThrough: attempt?.passThrough,
    stream: call.stream,
    ended: response.ended,
    status: response.status,
    code: error?.code,
    param: error?.param,
    reason: inside ? undefined : error?.message,
    cause: inside || error === undefined ? undefined : causeOf(error),
    error: inside ? (error.cause ?? error) : undefined,
    usage: usage === undefined ? undefined : counts(usage),
    losses: response.losses(),
    failedAttempts: response.failures(attemptText),
    ms: Math.round(response.ms * 10) / 10,
    firstMs: response.firstMs,
  };
}

/** Returns the cause of an upstream failure, for the operator. It is never shown to clients. */
function causeOf({ cause }: Error): string | undefined {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined;
}

/** Returns the numbers of a usage without those that are zero. */
function counts({
  input,
  output,
  cacheRead,
  cacheWrite,
  cacheWriteLong,
  reasoning,
  estimated,
}: Usage): object {
  return {
    input,
    output,
    cacheRead: cacheRead || undefined,
    cacheWrite: cacheWrite || undefined,
    cacheWriteLong: cacheWriteLong || undefined,
    reasoning: reasoning || undefined,
    estimated,
  };
}

function attemptText({ channel, failure }: AttemptEvent): string {
  return `${channel}: ${failure}`;
}
