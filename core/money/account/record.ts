/** Observes the response of one call and records its model, attempts, usage, times, dropped fields and end. */
import type { AttemptEvent, GatewayEvent } from '../../model/event.ts';
import type { Loss } from '../../model/extra.ts';
import type { Usage } from '../../model/usage.ts';
import type { CallOutcome, CallResponse } from '../../sdk/author/outcome.ts';
import { GatewayError, toGatewayError } from '../../sdk/errors.ts';
import type { Observing } from '../../sdk/followed-reply.ts';

/** How a response ended, as `observe` reports it. */
export type Ending = 'complete' | 'error' | 'left';

/** The members of a call that its record reads. */
export interface RecordedCall {
  readonly id: string;
  /** `performance.now()` when the request came in. */
  readonly startedAt: number;
  readonly stream: boolean;
  /** The model as the client wrote it; empty before the body is read. */
  readonly model: string;
  /** Fields that the client's format could not carry in the response. */
  readonly losses: readonly Loss[];
  /** The error with which the call was ended from outside of its stream. */
  readonly failure: GatewayError | undefined;
}

/** Maximum number of failed attempts, and of dropped fields, that are listed for one call. */
const maxListed = 50;

/** Record of one response. */
export class CallRecord implements Observing, CallResponse {
  readonly #call: RecordedCall;
  /** `performance.now()` when the request came in. */
  readonly startedAt: number;
  /** Attempts that failed and that no response names, because all of them failed. Shared by the records of one account. */
  readonly #unnamed: readonly AttemptEvent[];
  /** True from the moment that the call is sent down the pipeline. */
  isFollowed = false;
  /** Second observer of the same response, for plugins that store its text. */
  watcher: Observing | undefined = undefined;
  #losses: Loss[] | undefined;
  #failed: AttemptEvent[] | undefined;
  #model: string | undefined;
  #attempt: AttemptEvent | undefined;
  #usage: Usage | undefined;
  #firstAt: number | undefined;
  /** `left` is the default, because a call whose stream has no end was left by its client. */
  #how: Ending = 'left';
  #error: GatewayError | undefined;
  #isClosed = false;
  #endedAt: number | undefined;

  constructor(call: RecordedCall, unnamed: readonly AttemptEvent[], startedAt = call.startedAt) {
    this.#call = call;
    this.#unnamed = unnamed;
    this.startedAt = startedAt;
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
      case 'answer':
        // Status and headers of the provider: the client sees nothing before the bytes behind them.
        break;
      default:
        this.#firstAt ??= performance.now();
    }
    this.watcher?.event?.(event);
  }

  /** Keeps how the response ended. Only the first report counts. */
  end(how: Ending, error?: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#endedAt = performance.now();
    this.#how = error instanceof GatewayError && error.code === 'client_closed_request' ? 'left' : how;
    if (this.#how === 'error') this.#error = toGatewayError(error);
  }

  /** True when the response has ended. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  get id(): string {
    return this.#call.id;
  }

  get stream(): boolean {
    return this.#call.stream;
  }

  /** Milliseconds from the request to the end of the response; until now for a call that runs. */
  get ms(): number {
    return (this.#endedAt ?? performance.now()) - this.startedAt;
  }

  get ended(): Ending {
    return this.#how === 'left' && this.#call.failure !== undefined ? 'error' : this.#how;
  }

  /** As `ended`, where a call that failed after a part of its response was sent is `interrupted`. */
  get ending(): CallOutcome['ended'] {
    const { ended } = this;
    return ended === 'error' && this.hasBegun ? 'interrupted' : ended;
  }

  /** The error with which the call failed; undefined unless it did. */
  get error(): GatewayError | undefined {
    return this.#error ?? (this.#how === 'left' ? this.#call.failure : undefined);
  }

  /** True when the client has received a part of the response, and with it the status of a success. */
  get hasBegun(): boolean {
    return this.#firstAt !== undefined && (this.#call.stream || this.#attempt?.passThrough === true);
  }

  /** The status that the client saw; 499 when it left before there was one. */
  get status(): number {
    if (this.#how === 'complete' || this.hasBegun) return 200;
    return this.error?.status ?? 499;
  }

  /** The requested model after all edits; what the client wrote, which may be nothing, when the call did not come so far. */
  get model(): string {
    return this.#model ?? this.#call.model;
  }

  /** The attempt that answered. */
  get attempt(): AttemptEvent | undefined {
    return this.#attempt;
  }

  /** The last usage that the response reported. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Milliseconds from the request to the first event of the response. */
  get firstMs(): number | undefined {
    return this.#firstAt === undefined ? undefined : rounded(this.#firstAt - this.startedAt);
  }

  /** Returns the paths of the fields that were dropped on the way there and back; undefined when there are none. */
  losses(): readonly string[] | undefined {
    return listed(this.#losses, this.#call.losses, ({ path }) => path);
  }

  /** Returns the attempts that failed, each as `shown` gives it; undefined when there are none. */
  failures<T>(shown: (attempt: AttemptEvent) => T): readonly T[] | undefined {
    return listed(this.#failed, this.#unnamed, shown);
  }
}

/** Joins two lists without repetitions, at most {@link maxListed} entries; undefined when both are empty, which is nearly always. */
function listed<T, Shown>(
  some: readonly T[] | undefined,
  others: readonly T[],
  shown: (one: T) => Shown,
): readonly Shown[] | undefined {
  if (!some?.length && others.length === 0) return undefined;
  return [...new Set([...new Set([...(some ?? []), ...others])].map(shown))].slice(0, maxListed);
}

/** Rounds milliseconds to one decimal. */
export function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
