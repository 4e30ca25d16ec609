import { Observable, Subscriber } from 'rxjs';
import type { GatewayEvent } from './model/event.ts';

/** What `observe` calls. All members are optional. */
export interface Observing {
  event?(event: GatewayEvent): void;
  /** How the stream ended: `complete`, `error` (with what), or `left` when the client went away. Called exactly once. */
  end?(how: 'complete' | 'error' | 'left', error?: unknown): void;
  /** Receives what the other two throw: an observer's own errors never reach the client. Without it the first is a warning of the process. */
  failed?(error: unknown): void;
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
  readonly #steps: readonly Step[];

  constructor(reply: Observable<GatewayEvent>, steps: readonly Step[]) {
    super((subscriber) => {
      const following = new Following(subscriber, steps);
      following.begin(steps);
      reply.subscribe(following);
    });
    this.#reply = reply;
    this.#steps = steps;
  }

  /** The reply with one more step, behind those that it has. */
  static of(reply: Observable<GatewayEvent>, step: Step): FollowedReply {
    return reply instanceof FollowedReply
      ? new FollowedReply(reply.#reply, [...reply.#steps, step])
      : new FollowedReply(reply, [step]);
  }
}

/** Takes the events of one subscription. RxJS passes them to a Subscriber as it is, and to anything else through two more objects. */
class Following extends Subscriber<GatewayEvent> {
  readonly #observers: readonly Observing[];
  #ended = false;
  /** Those whose failure has been told. */
  #told: Set<Observing> | undefined;

  constructor(destination: Subscriber<GatewayEvent>, steps: readonly Step[]) {
    super();
    this.#observers = steps.filter(isObserving);
    this.destination = destination;
    // Last, as whoever has left already lets go of this at once.
    destination.add(this);
  }

  /** Gives the events that come before the reply, those of the last step first: it stands before all others. */
  begin(steps: readonly Step[]): void {
    for (let at = steps.length - 1; at >= 0; at -= 1) {
      const step = steps[at];
      if (step === undefined || isObserving(step)) continue;
      const behind = steps.slice(at + 1).filter(isObserving);
      for (const event of step) this.#give(event, behind);
    }
  }

  override next(event: GatewayEvent): void {
    this.#give(event, this.#observers);
  }

  override error(error: unknown): void {
    this.#end('error', error);
    super.error(error);
  }

  override complete(): void {
    this.#end('complete');
    super.complete();
  }

  override unsubscribe(): void {
    this.#end('left');
    super.unsubscribe();
  }

  #give(event: GatewayEvent, observers: readonly Observing[]): void {
    if (this.isStopped) return;
    for (const observer of observers) {
      if (observer.event === undefined) continue;
      try {
        observer.event(event);
      } catch (thrown) {
        this.#failed(observer, thrown);
      }
    }
    this.destination.next(event);
  }

  #end(how: 'complete' | 'error' | 'left', error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const observer of this.#observers) {
      try {
        observer.end?.(how, error);
      } catch (thrown) {
        this.#failed(observer, thrown);
      }
    }
  }

  #failed(observer: Observing, error: unknown): void {
    if (observer.failed !== undefined) observer.failed(error);
    else if (this.#told?.has(observer) !== true) {
      (this.#told ??= new Set()).add(observer);
      process.emitWarning(
        error instanceof Error ? error : new Error('An observer failed.', { cause: error }),
      );
    }
  }
}

function isObserving(step: Step): step is Observing {
  return !Array.isArray(step);
}
