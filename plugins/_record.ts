import type { Observable } from 'rxjs';
import { callKey, GatewayError, observe, type GatewayEvent, type Observing, type Usage } from 'sluice';
import {
  failedAttempts,
  toGatewayError,
  type AttemptEvent,
  type Call,
  type Loss,
  type Next,
} from 'sluice/internal';

const recordKey = callKey<CallRecord>('call record');

/**
 * Runs the rest of the pipeline under a record of the call, and `atEnd` once when the call has ended, however it ended. All who ask for
 * it share one record, which follows the reply for them once.
 */
export function recorded(
  call: Call,
  next: Next,
  atEnd: (record: CallRecord) => void,
): Promise<Observable<GatewayEvent>> {
  const known = call.get(recordKey);
  const record = known ?? new CallRecord(call);
  call.onEnd(() => {
    record.close();
    atEnd(record);
  });
  if (known !== undefined) return next(call);
  call.set(recordKey, record);
  return followed(call, next, record);
}

/** The record of a call that runs; undefined when nobody has asked for one. */
export function recordOf(call: Call): CallRecord | undefined {
  return call.get(recordKey);
}

function followed(call: Call, next: Next, record: CallRecord): Promise<Observable<GatewayEvent>> {
  const failed = (error: unknown): never => {
    record.end('error', error);
    throw error;
  };
  try {
    return next(call).then(observe(record), failed);
  } catch (error) {
    return failed(error);
  }
}

/** What is known of one call by the time it has ended. */
export class CallRecord implements Observing {
  readonly call: Call;
  /** `performance.now()` when the request came in. */
  readonly startedAt: number;
  #losses: Loss[] | undefined;
  #failed: AttemptEvent[] | undefined;
  #model: string | undefined;
  #attempt: AttemptEvent | undefined;
  #usage: Usage | undefined;
  #firstAt: number | undefined;
  /** A call that ends without a word of its stream was left by its client. */
  #how: 'complete' | 'error' | 'left' = 'left';
  #error: GatewayError | undefined;
  #ended = false;
  #endedAt: number | undefined;

  constructor(call: Call, startedAt = call.startedAt) {
    this.call = call;
    this.startedAt = startedAt;
  }

  /** Follows the reply. */
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
        // Status and headers of the provider: nobody sees them before the bytes behind them.
        break;
      default:
        this.#firstAt ??= performance.now();
    }
  }

  /** How the reply ended; only the first word counts. */
  end(how: 'complete' | 'error' | 'left', error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endedAt = performance.now();
    this.#how = error instanceof GatewayError && error.code === 'client_closed_request' ? 'left' : how;
    if (this.#how === 'error') this.#error = toGatewayError(error);
  }

  /** The call has ended: how is decided now, so that all who record it say the same, whatever still fails behind its end. */
  close(): void {
    this.end('left');
  }

  /** Milliseconds from the request to the end of the reply; until now for a call that runs. */
  get ms(): number {
    return (this.#endedAt ?? performance.now()) - this.startedAt;
  }

  get ended(): 'complete' | 'error' | 'left' {
    return this.#how === 'left' && this.call.failure !== undefined ? 'error' : this.#how;
  }

  /** What the call failed with; undefined unless it ended with an error. */
  get error(): GatewayError | undefined {
    return this.#error ?? (this.#how === 'left' ? this.call.failure : undefined);
  }

  /** True when the client has seen something of the reply, so that its status was that of a success. */
  get begun(): boolean {
    return this.#firstAt !== undefined && (this.call.stream || this.#attempt?.passThrough === true);
  }

  /** The status that the client saw; 499 when it left before there was one. */
  get status(): number {
    if (this.#how === 'complete' || this.begun) return 200;
    return this.error?.status ?? 499;
  }

  /** The model that was asked for after all edits; what the client wrote when the call did not come so far, which may be nothing. */
  get model(): string {
    return this.#model ?? this.call.askedModel;
  }

  /** The attempt that answered. */
  get attempt(): AttemptEvent | undefined {
    return this.#attempt;
  }

  /** What the provider said last. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Milliseconds from the request to the first event of the answer. */
  get firstMs(): number | undefined {
    return this.#firstAt === undefined ? undefined : rounded(this.#firstAt - this.startedAt);
  }

  /** Paths of what was lost on the way there and back; undefined when nothing was. */
  losses(): readonly string[] | undefined {
    return listed(this.#losses, this.call.losses, ({ path }) => path);
  }

  /** The attempts that failed, as the reply or its failure told them; undefined when there were none. */
  failures<T>(told: (attempt: AttemptEvent) => T): readonly T[] | undefined {
    return listed(this.#failed, this.call.get(failedAttempts), told);
  }
}

/** Both lists as they are told, each word once, and few enough for one line; undefined when there are none, which is nearly always. */
function listed<T, Told>(
  some: readonly T[] | undefined,
  others: readonly T[] | undefined,
  told: (one: T) => Told,
): readonly Told[] | undefined {
  if (!some?.length && !others?.length) return undefined;
  return [...new Set([...new Set([...(some ?? []), ...(others ?? [])])].map(told))].slice(0, 50);
}

/** Milliseconds with one decimal. */
export function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}

/**
 * For what is done about each call that has ended: gives what takes in one, and does the work in the next turn of the event loop, for all
 * calls of this one in a row. Between calls that still run each piece of work would find the processor's caches cold, and cost several
 * times as much. `failed` gets what the work throws: nobody stands behind a turn of the event loop, so that it would end the process.
 */
export function inNextTurn<T>(
  work: (one: T) => void,
  failed: (error: unknown, one: T) => void,
): (one: T) => void {
  let gathered: T[] = [];
  const run = (): void => {
    const all = gathered;
    gathered = [];
    for (const one of all) {
      try {
        work(one);
      } catch (error) {
        failed(error, one);
      }
    }
  };
  return (one) => {
    gathered.push(one);
    if (gathered.length === 1) setImmediate(run);
  };
}

/** Resolves when what {@link inNextTurn} has taken in so far is done: a plugin that closes waits for the calls that have just ended. */
export function doneInNextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
