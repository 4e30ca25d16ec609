/** One attempt of a call at one target: timeout, cancellation, and reports to health and load when it ends. */
import { catchError, throwError, type Observable } from 'rxjs';
import { type Call, type Target } from '../sdk/call.ts';
import type { Next } from '../sdk/define.ts';
import { clientCredentialOf } from '../sdk/client-credential.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { GatewayEvent } from '../model/event.ts';
import { observe } from '../sdk/operators.ts';
import type { AttemptReport } from '../sdk/health.ts';
import { isOfClient, withoutCredential } from '../upstream/credentials/client-answer.ts';
import type { KeyLoad, TargetLoads } from './load.ts';
import { addressed } from './target.ts';

/** Maximum delay of a timer in Node, in milliseconds. */
const longestTimer = 2_147_483_647;

/** Timeout of an attempt until the first event of its response. */
export interface AttemptTimeout {
  /** Milliseconds. */
  readonly milliseconds: number;
  /** True when the timeout is that of the call, which does not count against the target. */
  readonly isOfCall: boolean;
}

/** Outcome of an attempt for health. */
type Outcome = 'succeeded' | 'failed' | 'left';

/**
 * Lasts from the request to the end of the response. However it ends, it reports to health and load once, clears its timer, and releases
 * everything that belongs to it alone, up to the provider's socket.
 */
export class Attempt {
  readonly target: Target;
  readonly startedAt = performance.now();
  readonly #call: Call;
  readonly #report: AttemptReport;
  readonly #load: KeyLoad;
  readonly #life: ReturnType<Call['attempt']>;
  #timer: NodeJS.Timeout | undefined;
  #reject: ((error: GatewayError) => void) | undefined;
  #over = false;

  constructor(call: Call, target: Target, report: AttemptReport, load: TargetLoads) {
    this.target = target;
    this.#call = call;
    this.#report = report;
    this.#load = load.of(target);
    this.#load.enter();
    this.#life = call.attempt();
  }

  /** Sends the request. Resolves with the response at its first event; rejects with a GatewayError. Call it once. */
  begin(
    translate: Next,
    { milliseconds, isOfCall: callsOwn }: AttemptTimeout,
  ): Promise<Observable<GatewayEvent>> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#timer = setTimeout(() => this.#late(callsOwn), Math.min(milliseconds, longestTimer));
      // The client left, or the attempt was cancelled. The promise below may never settle in this case.
      this.#life.call.onEnd(() => this.#left());
      translate(addressed(this.#life.call, this.target)).then(
        (reply) => {
          // In production the results of plugins were not validated.
          try {
            if (this.#over) dismiss(reply);
            else resolve(this.#answered(reply));
          } catch (error) {
            this.#failed(toGatewayError(error));
          }
        },
        (error: unknown) => this.#failed(toGatewayError(error)),
      );
    });
  }

  /** Cancels the attempt because another one has responded. Its promise stays pending. */
  giveUp(): void {
    this.#tooSlow();
    this.#end('left');
    this.#life.end();
  }

  /** Ends the attempt with its response; see {@link observe}. */
  end(how: 'complete' | 'error' | 'left', error?: unknown): void {
    this.#end(how === 'complete' ? 'succeeded' : how === 'error' ? outcomeOf(error) : 'left', error);
    this.#life.end();
  }

  #answered(reply: Observable<GatewayEvent>): Observable<GatewayEvent> {
    const masked = this.target.channel.forwards === undefined ? reply : this.#hideClientCredential(reply);
    const followed = observe(this)(masked);
    this.#reject = undefined;
    clearTimeout(this.#timer);
    this.#report.answered();
    if (this.#measures) {
      const now = performance.now();
      this.#load.measured(this.target.model, now - this.startedAt, now);
    }
    return followed;
  }

  /** Measures the time to the first event of streams, and of operations other than chat. The time of a whole chat response depends mostly on its length. */
  get #measures(): boolean {
    return this.#call.stream || this.#call.operation !== 'chat';
  }

  #tooSlow(): void {
    if (this.#over || !this.#measures) return;
    const now = performance.now();
    this.#load.measured(this.target.model, now - this.startedAt, now, true);
  }

  #late(callsOwn: boolean): void {
    const error = new GatewayError('upstream_timeout', 'The upstream did not begin its response in time.', {
      origin: 'upstream',
    });
    this.#tooSlow();
    this.#failed(error, callsOwn ? 'left' : 'failed');
  }

  #failed(thrown: GatewayError, how: Outcome = outcomeOf(thrown)): void {
    if (this.#over) return;
    const error = this.#withoutClientCredential(thrown);
    const reject = this.#reject;
    this.#reject = undefined;
    this.#end(how, error);
    this.#life.end();
    reject?.(error);
  }

  #left(): void {
    if (this.#over) return;
    const reject = this.#reject;
    this.#reject = undefined;
    this.#end('left');
    reject?.(new GatewayError('client_closed_request', 'The call ended before it had a response.'));
  }

  /** Returns a failure without the client's own credential in its message. */
  #withoutClientCredential(error: GatewayError): GatewayError {
    const own = this.target.channel.forwards === undefined ? undefined : clientCredentialOf(this.#call);
    return own === undefined ? error : withoutCredential(error, own.value);
  }

  #hideClientCredential(reply: Observable<GatewayEvent>): Observable<GatewayEvent> {
    return reply.pipe(
      catchError((error: unknown) => throwError(() => this.#withoutClientCredential(toGatewayError(error)))),
    );
  }

  /** Returns a failure of the client's own account, whose credential the attempt used. */
  #isOfClient(error: unknown): boolean {
    return this.target.channel.forwards !== undefined && isOfClient(toGatewayError(error));
  }

  #end(how: Outcome, error?: unknown): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#load.leave();
    if (how === 'succeeded') this.#report.succeeded();
    else if (how === 'failed' && !this.#isOfClient(error)) this.#report.failed(toGatewayError(error));
    else this.#report.left();
  }
}

/**
 * Returns the outcome that an error means for health. A response that refuses a mistake of the client is a success. An error of the gateway
 * and a stale connection say nothing about the target.
 */
function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof GatewayError) || error.origin !== 'upstream' || error.staleConnection) return 'left';
  return error.retryable ? 'failed' : 'succeeded';
}

/** Cancels a response that arrives after the end of the attempt. */
export function dismiss(reply: Observable<GatewayEvent>): void {
  reply.subscribe({ error: () => {} }).unsubscribe();
}
