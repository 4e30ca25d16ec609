/** Continues a streamed response whose connection to the provider broke, with further requests to the same target. */
import { catchError, concatAll, concatMap, mergeMap, of, throwError, timer, type Observable } from 'rxjs';
import { z } from 'zod';
import {
  addReplyHeaders,
  chatOf,
  definePlugin,
  startWithEvents,
  toGatewayError,
  type AttemptEvent,
  type Call,
  type GatewayEvent,
  type Next,
  type PluginTools,
  type Target,
} from 'sluice';
import { continueFrom, usedBy } from './continue-from.ts';
import { Parts } from './parts.ts';

const options = z.strictObject({
  /** Maximum number of further requests for one response. */
  most: z.int().min(1).max(10).default(2),
  /** Milliseconds before the first further request. Each later pause is longer by the same amount. */
  pause: z.int().min(0).max(10_000).default(250),
});

/**
 * Continues a stream whose connection to the provider broke, if the model supports prefill: sends the request again with the beginning of
 * the response. The header `x-sluice-continuation` has the maximum number of such requests. The log and the usage record show the requests
 * that were made, and all of them are charged. Responses with reasoning, tool calls or a response schema are not continued and end with the
 * error.
 */
export default definePlugin({
  name: 'continuation',
  stage: 'translate',
  // Repeats the request as earlier plugins have changed it, and runs these plugins anew for each part of the response.
  before: ['learned-refusals', 'reasoning-vault', 'parallel-choices', 'translation'],
  whenListed: true,
  options,
  setup({ most, pause }, tools) {
    return async function continuation(call, next) {
      const { target } = call;
      if (target === undefined || !canGoOn(call, target)) return next(call);
      // Only a decoded response can be continued.
      const asking = call.with({ decoded: true });
      const reply = await next(asking);
      addReplyHeaders(call, { 'x-sluice-continuation': String(most) });
      return new Continuation(asking, next, target, { most, pause, tools }).from(reply);
    };
  },
});

/**
 * Returns true for a call that can be continued. Not with reasoning or a response schema, because providers reject a prefill beside them,
 * and not for calls that plugins make.
 */
function canGoOn(call: Call, { traits }: Target): boolean {
  if (traits.prefill !== true || call.operation !== 'chat' || !call.stream) return false;
  if (call.edits.codec !== undefined) return false;
  const { choices = 1, reasoning, responseFormat } = chatOf(call).settings;
  const thinks = reasoning !== undefined && reasoning.mode !== 'off' && reasoning.effort !== 'none';
  return choices === 1 && !thinks && (responseFormat === undefined || responseFormat.type === 'text');
}

interface Going {
  readonly most: number;
  readonly pause: number;
  readonly tools: PluginTools;
}

/** Response, with the requests for its parts. */
class Continuation {
  readonly #call: Call;
  readonly #next: Next;
  readonly #target: Target;
  readonly #going: Going;
  readonly #parts = new Parts();
  #requests = 0;
  /** Error that broke off the response. Failures of later continuations are only logged. */
  #cut: unknown;

  constructor(call: Call, next: Next, target: Target, going: Going) {
    this.#call = call;
    this.#next = next;
    this.#target = target;
    this.#going = going;
  }

  from(reply: Observable<GatewayEvent>): Observable<GatewayEvent> {
    return reply.pipe(
      mergeMap((event) => this.#parts.take(event)),
      catchError((error: unknown) => this.#broken(error)),
    );
  }

  #broken(thrown: unknown): Observable<GatewayEvent> {
    const error = toGatewayError(thrown);
    if (this.#cut === undefined || this.#parts.began) this.#cut = thrown;
    const { most, pause, tools } = this.#going;
    const { channel } = this.#target;
    const mayPass = error.origin === 'upstream' && error.retryable && error.retryAfter === undefined;
    if (!mayPass || !this.#parts.canGoOn || this.#requests >= most) return throwError(() => this.#cut);
    this.#requests += 1;
    const fields = { id: this.#call.id, channel: channel.id, code: error.code, request: this.#requests };
    tools.log.warn(fields, 'a response broke off: continuing it');
    // Reported here, because the attempt continues and may succeed.
    const failed = tools.reportFailure(this.#target, error);
    return timer(pause * this.#requests).pipe(
      concatMap(() => this.#goOn(failed)),
      // A refused request has no stream. Errors in a stream are caught where the stream is followed.
      catchError((refusal: unknown) => of(this.#broken(refusal))),
      concatAll(),
    );
  }

  async #goOn(failed: AttemptEvent): Promise<Observable<GatewayEvent>> {
    const used = await usedBy(this.#call, this.#parts);
    const call = continueFrom(this.#call, this.#target, this.#parts.text);
    const between = this.#parts.goOn(used);
    const reply = await this.#next(call);
    return startWithEvents([failed, ...between], this.from(reply));
  }
}
