/**
 * RxJS operators and functions on streams of events for plugins: observe, work in order with backpressure, wait for the first event, collect.
 */
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
 * Observes the stream without changing it.
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
 * Runs asynchronous work for each event, in order. Meanwhile the call's gate is closed, so that the provider waits too. The result of `work`
 * replaces the event; an empty list drops it. Use no other asynchronous operator.
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

/** Does the same as {@link eachInOrder} for streams of any type. */
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
            // Removes handled events at times, because the queue may not become empty for long.
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
        // Opening the gate may have started another run, which then handles the end.
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
 * Waits for the first event, the end or the failure of a stream. Resolves to a stream that begins with that event; rejects with a failure that
 * comes before it. `counts` selects the event to wait for: earlier events are kept and come with it, or are dropped with the failure. When more
 * events come before the subscriber, the gate is closed until it subscribes. The returned stream takes one subscriber.
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

/** Maximum number of events that are kept before one counts. */
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
 * Resolves to all events of a response, once it is complete: for calls that a plugin makes by itself. Rejects with the error of the response,
 * and when the call ends first.
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
      reject(new GatewayError('client_closed_request', 'The call ended before it had a response.'));
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
 * Returns a stream of these events, then those of the response.
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
