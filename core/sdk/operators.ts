import {
  Observable,
  type OperatorFunction,
  type MonoTypeOperatorFunction,
  type Observer,
  type Subscriber,
  type Subscription,
} from 'rxjs';
import type { Call } from './author/call.ts';
import { GatewayError } from './errors.ts';
import { FollowedReply, type Observing } from './followed-reply.ts';
import type { Gate } from './gate.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Usage } from '../model/usage.ts';

/**
 * Watches the stream without touching it.
 *
 * @example
 * return (await next(call)).pipe(observe({ event: (event) => count(event.type), end: (how) => report(how) }));
 */
export function observe(observing: Observing): MonoTypeOperatorFunction<GatewayEvent> {
  return (source) => new FollowedReply(source, observing);
}

/**
 * Calls back once with the last usage that was seen (undefined when there was none), however the stream ended.
 *
 * @example
 * return (await next(call)).pipe(onUsage((usage) => log.info({ output: usage?.output }, 'used')));
 */
export function onUsage(
  callback: (usage: Usage | undefined) => void,
): MonoTypeOperatorFunction<GatewayEvent> {
  let usage: Usage | undefined;
  return observe({
    event(event) {
      if (event.type === 'usage') usage = event.usage;
    },
    end: () => callback(usage),
  });
}

/**
 * Does slow work for each event, in order. While one event waits the call's gate is shut, so that the provider waits too.
 * What `work` gives takes the event's place; an empty list drops it. The only asynchronous operator there should be.
 *
 * @example
 * return (await next(call)).pipe(
 *   eachInOrder(call, async (event) => (event.type === 'text-delta' ? [{ ...event, text: await translated(event.text) }] : [event])),
 * );
 */
export function eachInOrder(
  call: Call,
  work: (event: GatewayEvent) => Promise<readonly GatewayEvent[]>,
): MonoTypeOperatorFunction<GatewayEvent> {
  return inOrder(call, work);
}

/** The same for anything that a provider sends. */
export function inOrder<In, Out>(
  call: Pick<Call, 'gate'>,
  work: (event: In) => Promise<readonly Out[]>,
): OperatorFunction<In, Out> {
  return (source) =>
    new Observable((subscriber) => {
      /** Events that wait, from `next` on. */
      let queue: In[] = [];
      let next = 0;
      let busy = false;
      let done: (() => void) | undefined;
      const drain = async (): Promise<void> => {
        busy = true;
        call.gate.close();
        try {
          for (let event = queue[next]; event !== undefined && !subscriber.closed; event = queue[next]) {
            next += 1;
            // Now and then, lest what was done is kept as long as something waits.
            if (next > 1024 && next * 2 > queue.length) next -= queue.splice(0, next).length;
            for (const result of await work(event)) subscriber.next(result);
          }
          queue = [];
          next = 0;
        } catch (error) {
          subscriber.error(error);
        } finally {
          busy = false;
          call.gate.open();
        }
        // Opening the gate may have brought more at once: the end then belongs to the run that works on it.
        if (!busy) done?.();
      };
      const subscription = source.subscribe({
        next(event) {
          queue.push(event);
          if (!busy) void drain();
        },
        error(error) {
          const end = (): void => subscriber.error(error);
          if (busy) done = end;
          else end();
        },
        complete() {
          const end = (): void => subscriber.complete();
          if (busy) done = end;
          else end();
        },
      });
      return subscription;
    });
}

/**
 * Waits for the first event (or the end, or the failure) before promising anything. Resolves to a stream that begins with that event;
 * rejects with the failure when nothing came before it. `counts` says which event is the first that counts: those before it are kept and
 * come with it, or are lost with the failure. When more comes before somebody subscribes, the gate is shut until then, so that nothing
 * piles up. The returned stream takes one subscriber.
 *
 * @example
 * const reply = await peekFirst(await next(call), call.gate);
 */
export function peekFirst<T>(
  source: Observable<T>,
  gate: Gate,
  counts: (value: T) => boolean = () => true,
): Promise<Observable<T>> {
  return new Promise((resolve, reject) => {
    new Peeked<T>(gate, counts, resolve, reject).follow(source);
  });
}

/** So many events are kept before one counts, whatever a provider sends. */
const mostUncounted = 1000;

/** One stream between its first event and its subscriber. */
class Peeked<T> implements Observer<T> {
  readonly #gate: Gate;
  readonly #counts: (value: T) => boolean;
  readonly #resolve: (stream: Observable<T>) => void;
  readonly #reject: (error: Error) => void;
  #early: T[] | undefined;
  #target: Subscriber<T> | undefined;
  #outcome: { readonly error?: unknown } | undefined;
  #settled = false;
  #holdsGate = false;
  #subscription: Subscription | undefined;

  constructor(
    gate: Gate,
    counts: (value: T) => boolean,
    resolve: (stream: Observable<T>) => void,
    reject: (error: Error) => void,
  ) {
    this.#gate = gate;
    this.#counts = counts;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  follow(source: Observable<T>): void {
    this.#subscription = source.subscribe(this);
  }

  next(value: T): void {
    if (this.#target !== undefined) {
      this.#target.next(value);
      return;
    }
    const early = (this.#early ??= []);
    early.push(value);
    if (!this.#settled) {
      if (this.#counts(value) || early.length > mostUncounted) this.#settle();
    } else if (!this.#holdsGate) {
      this.#holdsGate = true;
      this.#gate.close();
    }
  }

  error(error: unknown): void {
    if (this.#target !== undefined) this.#target.error(error);
    else if (this.#settled) this.#outcome = { error };
    else this.#reject(error instanceof Error ? error : new Error('The stream failed.', { cause: error }));
  }

  complete(): void {
    if (this.#target !== undefined) this.#target.complete();
    else {
      this.#outcome = {};
      if (!this.#settled) this.#settle();
    }
  }

  #settle(): void {
    this.#settled = true;
    this.#resolve(new Observable<T>((subscriber) => this.#subscribed(subscriber)));
  }

  #subscribed(subscriber: Subscriber<T>): () => void {
    this.#target = subscriber;
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) for (const value of early) subscriber.next(value);
    if (this.#outcome !== undefined) {
      if ('error' in this.#outcome) subscriber.error(this.#outcome.error);
      else subscriber.complete();
    }
    if (this.#holdsGate) this.#gate.open();
    return () => this.#subscription?.unsubscribe();
  }
}

/**
 * All events of a reply, once it is complete: for calls that a plugin makes on its way. Rejects with what broke it. When the call ends
 * first the reply is let go of, and the promise rejects.
 *
 * @example
 * const events = await gathered(call, await next(call.with({ body, decoded: true })));
 */
export function gathered<T = GatewayEvent>(call: Call, source: Observable<T>): Promise<readonly T[]> {
  return new Promise((resolve, reject) => {
    const events: T[] = [];
    let subscription: Subscription | undefined;
    let over = false;
    const forget = call.onEnd(() => {
      over = true;
      subscription?.unsubscribe();
      reject(new GatewayError('client_closed_request', 'The call ended before it was answered.'));
    });
    subscription = source.subscribe({
      next: (event) => {
        events.push(event);
      },
      error: (error) => {
        forget();
        reject(error instanceof Error ? error : new Error('The stream failed.', { cause: error }));
      },
      complete: () => {
        forget();
        resolve(events);
      },
    });
    if (over) subscription.unsubscribe();
  });
}

/**
 * Events first, then the stream: for what is known before the reply.
 *
 * @example
 * return startWithEvents([{ type: 'loss', loss }], await next(call));
 */
export function startWithEvents(
  first: readonly GatewayEvent[],
  rest: Observable<GatewayEvent>,
): Observable<GatewayEvent> {
  return new FollowedReply(rest, first);
}
