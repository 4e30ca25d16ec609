/** Runs all observers of a response, and the events inserted before it, in a single subscription. */
import { Observable, type Observer, type Subscriber, type Subscription } from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';

/**
 * Callbacks of `observe`. All members are optional.
 *
 * @example
 * const watching: Observing = { event: (event) => seen.push(event), end: (how) => log.info({ how }, 'ended') };
 */
export interface Observing {
  event?(event: GatewayEvent): void;
  /** Handles the end of the stream: `complete`, `error` (with the error), or `left` when the client has disconnected. Called exactly once. */
  end?(how: 'complete' | 'error' | 'left', error?: unknown): void;
  /** Receives what the other two throw: an observer's own errors never reach the client. Without it the first is logged. */
  failed?(error: unknown): void;
}

const warn = (error: unknown): void =>
  process.emitWarning(error instanceof Error ? error : new Error('An observer failed.', { cause: error }));

let reportObserverError = warn;

/**
 * Has errors of observers that take none themselves reported, until the returned function is called. One reporter for the process, because
 * a reply does not know which gateway it belongs to. Without one they are warnings of the process.
 */
export function reportObserverErrors(report: (error: unknown) => void): () => void {
  reportObserverError = report;
  return () => {
    if (reportObserverError === report) reportObserverError = warn;
  };
}

/** One step of a response: events that come before it, or an observer. */
type Step = readonly GatewayEvent[] | Observing;

/**
 * A response with its steps, the one nearest to the provider first. One subscription serves all observers, because each further operator would
 * cost more than the work of an observer: between two chunks of a stream its code leaves the processor's caches.
 */
export class FollowedReply extends Observable<GatewayEvent> {
  readonly #reply: Observable<GatewayEvent>;
  readonly #step: Step;

  /** The reply with one more step, behind those that it has. */
  constructor(reply: Observable<GatewayEvent>, step: Step) {
    super((subscriber) => this.#subscribed(subscriber));
    this.#reply = reply;
    this.#step = step;
  }

  #subscribed(subscriber: Subscriber<GatewayEvent>): void {
    const following = new Following(subscriber);
    following.take(this.#step);
    let reply = this.#reply;
    while (reply instanceof FollowedReply) {
      following.take(reply.#step);
      reply = reply.#reply;
    }
    following.follow(reply);
  }
}

/** The observer of the source, for one subscription. */
class Following implements Observer<GatewayEvent> {
  readonly #subscriber: Subscriber<GatewayEvent>;
  /** Observers, those nearest to the provider first. */
  readonly #observers: Observing[] = [];
  #ended = false;
  #subscription: Subscription | undefined;
  /** Observers whose failure was reported. */
  #notified: Set<Observing> | undefined;

  constructor(subscriber: Subscriber<GatewayEvent>) {
    this.#subscriber = subscriber;
    // First, because the subscriber may unsubscribe during the events of a step.
    subscriber.add(() => {
      this.#end('left');
      this.#subscription?.unsubscribe();
    });
  }

  follow(reply: Observable<GatewayEvent>): void {
    if (this.#ended) return;
    this.#subscription = reply.subscribe(this);
    if (this.#ended) this.#subscription.unsubscribe();
  }

  /** Adds the step before those that were added: its own events are emitted at once, and only the steps behind it see them. */
  take(step: Step): void {
    if (!isObserving(step)) for (const event of step) this.next(event);
    else if (this.#ended) this.#notifyEnd(step, 'left');
    else this.#observers.unshift(step);
  }

  next(event: GatewayEvent): void {
    if (this.#ended) return;
    for (const observer of this.#observers) {
      if (observer.event === undefined) continue;
      try {
        observer.event(event);
      } catch (thrown) {
        this.#failed(observer, thrown);
      }
    }
    this.#subscriber.next(event);
  }

  error(error: unknown): void {
    this.#end('error', error);
    this.#subscriber.error(error);
  }

  complete(): void {
    this.#end('complete');
    this.#subscriber.complete();
  }

  #end(how: 'complete' | 'error' | 'left', error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const observer of this.#observers) this.#notifyEnd(observer, how, error);
  }

  #notifyEnd(observer: Observing, how: 'complete' | 'error' | 'left', error?: unknown): void {
    try {
      observer.end?.(how, error);
    } catch (thrown) {
      this.#failed(observer, thrown);
    }
  }

  #failed(observer: Observing, error: unknown): void {
    if (observer.failed !== undefined) observer.failed(error);
    else if (this.#notified?.has(observer) !== true) {
      (this.#notified ??= new Set()).add(observer);
      reportObserverError(error);
    }
  }
}

function isObserving(step: Step): step is Observing {
  return !Array.isArray(step);
}
