import { z } from 'zod';
import {
  caller,
  definePlugin,
  failedAttempts,
  GatewayError,
  observe,
  toGatewayError,
  type AttemptEvent,
  type Call,
  type GatewayEvent,
  type Loss,
  type Observing,
  type Usage,
} from '#sluice';
import { clientRequestId } from './request-id.ts';

const options = z.strictObject({
  /** Whether calls that went well are logged too. */
  successes: z.boolean().default(true),
  /** The level of lines about calls that went well. */
  level: z.enum(['debug', 'info']).default('info'),
});

/**
 * The operator finds one line for every call that has ended, also for one that was refused before its body was read: who called, what was
 * asked, who answered, how it ended, what it used and how long it took. Never a word of what was said.
 */
export default definePlugin({
  name: 'logging',
  stage: 'observe',
  options,
  setup({ successes, level }, { log }) {
    return async function logging(call, next) {
      const record = new CallRecord(call);
      call.onEnd(() => {
        const trouble = record.trouble();
        if (trouble !== undefined) log[trouble](record.fields(), record.sentence());
        else if (successes) log.plain(level, record.fields(), record.sentence());
      });
      try {
        return (await next(call)).pipe(observe(record));
      } catch (error) {
        record.end('error', error);
        throw error;
      }
    };
  },
});

/** What is known of one call by the time it has ended. */
class CallRecord implements Observing {
  readonly #call: Call;
  #losses: Loss[] | undefined;
  #failed: AttemptEvent[] | undefined;
  #model: string | undefined;
  #attempt: AttemptEvent | undefined;
  #usage: Usage | undefined;
  #firstAt: number | undefined;
  /** A call that ends without a word of its stream was left by its client. */
  #how: 'complete' | 'error' | 'left' = 'left';
  #error: unknown;
  #ended = false;

  constructor(call: Call) {
    this.#call = call;
  }

  event(event: GatewayEvent): void {
    switch (event.type) {
      case 'request':
        this.#model = event.model;
        break;
      case 'attempt':
        if (event.failure === undefined) this.#attempt = event;
        else (this.#failed ??= []).push(event);
        break;
      case 'usage':
        this.#usage = event.usage;
        break;
      case 'loss':
        (this.#losses ??= []).push(event.loss);
        break;
      default:
        this.#firstAt ??= performance.now();
    }
  }

  end(how: 'complete' | 'error' | 'left', error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#how = error instanceof GatewayError && error.code === 'client_closed_request' ? 'left' : how;
    this.#error = error;
  }

  /** The level of a line that must not be held back; undefined for a call that went well. */
  trouble(): 'info' | 'warn' | 'error' | undefined {
    if (this.#how === 'complete') return undefined;
    if (this.#how === 'left') return 'info';
    const error = toGatewayError(this.#error);
    if (error.code === 'internal_error') return 'error';
    return error.origin === 'client' ? 'info' : 'warn';
  }

  sentence(): string {
    if (this.#how === 'complete') return 'a call was answered';
    if (this.#how === 'left') return 'a call was left by its client';
    return toGatewayError(this.#error).origin === 'client' ? 'a call was refused' : 'a call failed';
  }

  fields(): object {
    const call = this.#call;
    const { askedModel, startedAt } = call;
    const model = this.#model ?? askedModel;
    return {
      id: call.id,
      clientId: call.get(clientRequestId),
      keyId: call.get(caller)?.id,
      ip: call.wire.ip,
      format: call.format.name,
      operation: call.operation,
      model: askedModel || undefined,
      modelInForce: model === askedModel ? undefined : model,
      channel: this.#attempt?.channel,
      upstreamModel: this.#attempt?.model === model ? undefined : this.#attempt?.model,
      upstreamFormat: this.#attempt?.passThrough === true ? undefined : this.#attempt?.format,
      passThrough: this.#attempt?.passThrough,
      stream: call.stream,
      ended: this.#how,
      ...this.#outcome(),
      usage: this.#usage === undefined ? undefined : counts(this.#usage),
      losses: listed(this.#losses, call.losses, ({ path }) => path),
      failedAttempts: listed(this.#failed, call.get(failedAttempts), attemptText),
      ms: rounded(performance.now() - startedAt),
      firstMs: this.#firstAt === undefined ? undefined : rounded(this.#firstAt - startedAt),
    };
  }

  #outcome(): object {
    const begun = this.#firstAt !== undefined && (this.#call.stream || this.#attempt?.passThrough === true);
    if (this.#how === 'complete') return { status: 200 };
    if (this.#how === 'left') return { status: begun ? 200 : 499 };
    const error = toGatewayError(this.#error);
    const told = { status: begun ? 200 : error.status, code: error.code, param: error.param };
    if (error.code !== 'internal_error') return { ...told, reason: error.message, cause: causeOf(error) };
    return { ...told, error: error.cause ?? error };
  }
}

/** What lies behind a failure of an upstream: never shown to clients, and all that the operator has. */
function causeOf({ cause }: Error): string | undefined {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined;
}

/** The numbers of a usage; parts that are zero are left out. */
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

/** Both lists as texts, each once, and few enough for one line; undefined when there are none, which is nearly always. */
function listed<T>(
  some: readonly T[] | undefined,
  others: readonly T[] | undefined,
  text: (one: T) => string,
): readonly string[] | undefined {
  if (!some?.length && !others?.length) return undefined;
  return [...new Set([...(some ?? []), ...(others ?? [])].map(text))].slice(0, 50);
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
