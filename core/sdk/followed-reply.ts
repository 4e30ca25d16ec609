import { Observable, type Observer, type Subscriber, type Subscription } from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';

/**
 * What `observe` calls. All members are optional.
 *
 * @example
 * const watching: Observing = { event: (event) => seen.push(event), end: (how) => log.info({ how }, 'ended') };
 */
export interface Observing {
  event?(event: GatewayEvent): void;
  /** How the stream ended: `complete`, `error` (with what), or `left` when the client went away. Called exactly once. */
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

/** What happens to a reply on its way: events come before it, or somebody watches it. */
type Step = readonly GatewayEvent[] | Observing;

/**
 * A reply and what happens to it on its way, the step nearest to the provider first. However many watch a call, its events pass one place
 * for all of them: by the time the next chunk of a stream comes the processor has forgotten the last one, and every place that it passes
 * costs more than what is done there.
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

/** Takes the events of one subscription. */
class Following implements Observer<GatewayEvent> {
  readonly #subscriber: Subscriber<GatewayEvent>;
  /** Those nearest to the provider first. */
  readonly #observers: Observing[] = [];
  #ended = false;
  #subscription: Subscription | undefined;
  /** Those whose failure has been told. */
  #told: Set<Observing> | undefined;

  constructor(subscriber: Subscriber<GatewayEvent>) {
    this.#subscriber = subscriber;
    // First, as events of a step's own may be all that whoever subscribes wants.
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

  /** Takes the step that stands before those that were taken: events of its own go out at once, and only those behind it see them. */
  take(step: Step): void {
    if (!isObserving(step)) for (const event of step) this.next(event);
    else if (this.#ended) this.#tellEnd(step, 'left');
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
    for (const observer of this.#observers) this.#tellEnd(observer, how, error);
  }

  #tellEnd(observer: Observing, how: 'complete' | 'error' | 'left', error?: unknown): void {
    try {
      observer.end?.(how, error);
    } catch (thrown) {
      this.#failed(observer, thrown);
    }
  }

  #failed(observer: Observing, error: unknown): void {
    if (observer.failed !== undefined) observer.failed(error);
    else if (this.#told?.has(observer) !== true) {
      (this.#told ??= new Set()).add(observer);
      reportObserverError(error);
    }
  }
}

function isObserving(step: Step): step is Observing {
  return !Array.isArray(step);
}
