/**
 * Operator that delays events of a response until something is stored, so that the client cannot see the end of a response before it is
 * saved.
 */
import { Observable, type MonoTypeOperatorFunction, type Subscriber } from 'rxjs';
import type { Call } from './author/call.ts';
import type { GatewayEvent } from '../model/event.ts';

/**
 * Decision about an event: forward it (`pass`); delay it until another event comes, because it may be the last (`late`); or store something
 * before the client sees it and the events after it (`keep`).
 *
 * @example
 * const verdict: KeepVerdict = event.type === 'finish' ? 'keep' : 'pass';
 */
export type KeepVerdict = 'pass' | 'late' | 'keep';

/**
 * Stores something of a response before the client can know that the response is complete. An error that it throws ends the response.
 *
 * @example
 * const keeper: Keeper = { see: ({ type }) => (type === 'finish' ? 'keep' : 'pass'), keep: () => save(call) };
 */
export interface Keeper {
  see(event: GatewayEvent): KeepVerdict;
  /**
   * Stores what is there to store: called at each `keep`, and when the response is complete or broke. Returns undefined when there is nothing
   * (more); the client waits for a promise.
   */
  keep(failure?: { readonly error: unknown }): Promise<void> | undefined;
}

/**
 * Forwards a response, except for events that a {@link Keeper} delays until it has stored something. Meanwhile the call's gate is closed, so
 * that the provider waits. An event for which nothing is stored costs no promise. When the client has left, nothing is stored.
 *
 * @example
 * return (await next(call)).pipe(holdBack(call, keeper));
 */
export function holdBack(call: Call, keeper: Keeper): MonoTypeOperatorFunction<GatewayEvent> {
  return (source) => new Observable((subscriber) => source.subscribe(new Holding(call, keeper, subscriber)));
}

/** End of the source. */
interface Outcome {
  readonly failure: { readonly error: unknown } | undefined;
}

/** The observer of one response. */
class Holding {
  readonly #call: Call;
  readonly #keeper: Keeper;
  readonly #subscriber: Subscriber<GatewayEvent>;
  #late: GatewayEvent[] = [];
  /** True while something is being stored and while the events that came meanwhile are emitted. */
  #busy = false;
  readonly #queue: GatewayEvent[] = [];
  #outcome: Outcome | undefined;

  constructor(call: Call, keeper: Keeper, subscriber: Subscriber<GatewayEvent>) {
    this.#call = call;
    this.#keeper = keeper;
    this.#subscriber = subscriber;
  }

  next(event: GatewayEvent): void {
    if (this.#busy) {
      this.#queue.push(event);
      return;
    }
    try {
      this.#take(event);
    } catch (error) {
      this.#fail(error);
    }
  }

  error(error: unknown): void {
    this.#over({ failure: { error } });
  }

  complete(): void {
    this.#over({ failure: undefined });
  }

  #over(outcome: Outcome): void {
    this.#outcome = outcome;
    if (this.#busy) return;
    try {
      this.#end(outcome);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Errors the response, which ends the subscription to the source too. The source's own error takes precedence. */
  #fail(error: unknown): void {
    this.#queue.length = 0;
    this.#late = [];
    const failure = this.#outcome?.failure;
    this.#subscriber.error(failure === undefined ? error : failure.error);
  }

  /** Returns true when the event waits, and all events behind it. */
  #take(event: GatewayEvent): boolean {
    const verdict = this.#keeper.see(event);
    const kept = verdict === 'keep' ? this.#keeper.keep() : undefined;
    if (kept !== undefined) {
      this.#wait(kept, () => this.#pass(event));
      return true;
    }
    if (verdict === 'late') {
      this.#release();
      this.#late.push(event);
    } else this.#pass(event);
    return false;
  }

  #pass(event: GatewayEvent): void {
    // Usage behind the last bytes is no sign that more bytes come.
    if (this.#late.length > 0 && event.type === 'usage') this.#late.push(event);
    else {
      this.#release();
      this.#subscriber.next(event);
    }
  }

  #end({ failure }: Outcome): void {
    const finish = (): void => {
      // Drops delayed events of a broken response, so that a client that has seen nothing yet gets an error status.
      if (failure !== undefined) this.#subscriber.error(failure.error);
      else {
        this.#release();
        this.#subscriber.complete();
      }
    };
    const kept = this.#keeper.keep(failure);
    if (kept === undefined) finish();
    else this.#wait(kept, finish);
  }

  #wait(kept: Promise<void>, then: () => void): void {
    this.#busy = true;
    this.#call.gate.close();
    const goOn = (): void => {
      then();
      this.#drain();
    };
    void kept
      .then(goOn)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => this.#call.gate.open());
  }

  /** Emits the events that came meanwhile, in their order. Events that come during that are queued behind them. */
  #drain(): void {
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      if (this.#subscriber.closed) return;
      if (this.#take(event)) return;
    }
    this.#busy = false;
    if (this.#outcome !== undefined && !this.#subscriber.closed) this.#end(this.#outcome);
  }

  #release(): void {
    const late = this.#late;
    if (late.length === 0) return;
    this.#late = [];
    for (const event of late) this.#subscriber.next(event);
  }
}
