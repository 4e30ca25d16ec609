import { Observable, type MonoTypeOperatorFunction, type Subscriber } from 'rxjs';
import type { Call } from './author/call.ts';
import type { GatewayEvent } from '../model/event.ts';

/**
 * What becomes of an event: it goes on (`pass`); it waits until more comes, because it may be the last (`late`); or something must be kept
 * before the client sees it and what follows (`keep`).
 *
 * @example
 * const verdict: KeepVerdict = event.type === 'finish' ? 'keep' : 'pass';
 */
export type KeepVerdict = 'pass' | 'late' | 'keep';

/**
 * Keeps something of a reply before the client can know that the reply is over. What it throws is the end of the reply, as its error.
 *
 * @example
 * const keeper: Keeper = { see: ({ type }) => (type === 'finish' ? 'keep' : 'pass'), keep: () => save(call) };
 */
export interface Keeper {
  see(event: GatewayEvent): KeepVerdict;
  /**
   * Keeps what there is to keep: called at each `keep`, and when the reply is complete or broke. Undefined when there is nothing (more);
   * the client waits for a promise.
   */
  keep(failure?: { readonly error: unknown }): Promise<void> | undefined;
}

/**
 * Lets a reply go by, but for what a {@link Keeper} holds back until it is kept. Meanwhile the call's gate is shut, so that the provider
 * waits; an event for which nothing is kept costs a question and no promise. A client that left has nothing kept.
 *
 * @example
 * return (await next(call)).pipe(holdBack(call, keeper));
 */
export function holdBack(call: Call, keeper: Keeper): MonoTypeOperatorFunction<GatewayEvent> {
  return (source) => new Observable((subscriber) => source.subscribe(new Holding(call, keeper, subscriber)));
}

/** How the source ended. */
interface Outcome {
  readonly failure: { readonly error: unknown } | undefined;
}

/** One reply on its way. */
class Holding {
  readonly #call: Call;
  readonly #keeper: Keeper;
  readonly #subscriber: Subscriber<GatewayEvent>;
  #late: GatewayEvent[] = [];
  /** True while something is being kept and while what came meanwhile goes out. */
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

  /** The error ends the subscription to the source too. A reply that broke by itself is told of by what broke it. */
  #fail(error: unknown): void {
    this.#queue.length = 0;
    this.#late = [];
    const failure = this.#outcome?.failure;
    this.#subscriber.error(failure === undefined ? error : failure.error);
  }

  /** True when the event waits, and all behind it. */
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
      // The end of what broke is of no use: a client that has seen nothing yet is better told in a status.
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

  /** What came meanwhile, in its order; what that brings in turn queues up behind it. */
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
