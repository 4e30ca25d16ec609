/** Lets several clients read one list of events while it grows, each at its own pace and with its own backpressure. */
import { Observable, type Subscriber } from 'rxjs';
import type { Call, GatewayEvent } from 'sluice';

/** Events that several clients read, each at its own pace. */
export interface EventLog {
  /** Returns the event at an index; undefined for one that has not arrived yet. */
  eventAt(index: number): GatewayEvent | undefined;
  /** Set once no event follows. */
  readonly end: { readonly error?: unknown } | undefined;
}

/** Returns an event as one client gets it, or undefined to omit it. */
export type Shown = (event: GatewayEvent) => GatewayEvent | undefined;

/** Reader of a log for one client. Stops reading while the client's gate is closed (backpressure). */
export class LogReader {
  readonly #log: EventLog;
  readonly #gate: Call['gate'];
  readonly #shown: Shown;
  readonly #progress: (() => void) | undefined;
  #index = 0;
  #isWaiting = false;
  #subscriber: Subscriber<GatewayEvent> | undefined;
  /** The response of this client, for one subscriber. `left` runs when that is unsubscribed or has all of it. */
  readonly stream: Observable<GatewayEvent>;

  constructor(
    log: EventLog,
    gate: Call['gate'],
    {
      shown = (event) => event,
      progress,
      left,
    }: {
      readonly shown?: Shown;
      /** Runs when the reader has taken events. */
      readonly progress?: () => void;
      readonly left?: () => void;
    },
  ) {
    this.#log = log;
    this.#gate = gate;
    this.#shown = shown;
    this.#progress = progress;
    this.stream = new Observable((subscriber) => {
      this.#subscriber = subscriber;
      this.pump();
      return left;
    });
  }

  /** Index of the next event. */
  get index(): number {
    return this.#index;
  }

  /** Sends the events that have arrived to the client, as far as its gate is open. */
  pump(): void {
    const subscriber = this.#subscriber;
    if (subscriber === undefined || this.#isWaiting) return;
    const before = this.#index;
    for (;;) {
      if (subscriber.closed) return;
      const opened = this.#gate.opened();
      if (opened !== undefined) {
        this.#isWaiting = true;
        void opened.then(() => {
          this.#isWaiting = false;
          this.pump();
        });
        break;
      }
      const event = this.#log.eventAt(this.#index);
      if (event === undefined) break;
      this.#index += 1;
      const shown = this.#shown(event);
      if (shown !== undefined) subscriber.next(shown);
    }
    if (this.#index !== before) this.#progress?.();
    this.#finish(subscriber);
  }

  #finish(subscriber: Subscriber<GatewayEvent>): void {
    const { end } = this.#log;
    if (end === undefined || this.#isWaiting || this.#log.eventAt(this.#index) !== undefined) return;
    this.#subscriber = undefined;
    if ('error' in end) subscriber.error(end.error);
    else subscriber.complete();
  }
}
