/**
 * Shutdown of a gateway, at a stop or after another process has taken over: stops accepting connections, drains calls, then closes everything
 * else.
 */
import { setTimeout as pass } from 'node:timers/promises';
import type { DetachedCalls } from '../call/detached.ts';
import type { App } from './app.ts';
import type { Connections } from './connections.ts';

/** Time for clients to receive the last bytes of their calls before connections are closed, in milliseconds. */
const lastWords = 250;

/** Interval at which idle connections are closed while the gateway stops, in milliseconds. */
const sweepEvery = 50;

/** Interval at which the end of detached calls is polled, in milliseconds. */
const lookEvery = 100;

/** Parts of the gateway that are shut down, and their time limits. */
export interface EndingOptions {
  readonly app: App;
  readonly connections: Connections;
  /** Milliseconds for open calls to finish: when the gateway stops, and when another process has taken over. */
  readonly drain: number;
  readonly reload: number;
  /** Calls that go on without a client. */
  readonly detached: Pick<DetachedCalls, 'running'>;
  /** Closes everything else; runs once. */
  readonly close: () => Promise<void>;
}

/** Shutdown of one gateway. */
export class Ending {
  readonly #options: EndingOptions;
  #over: Promise<void> | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #sweeping: NodeJS.Timeout | undefined;
  #stopping = false;
  /** The time for open calls is over. */
  #isLate = false;

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  /**
   * Stops without a successor: closes idle connections, and cuts calls (detached ones too) at the end of the drain time. Resolves when
   * everything is closed.
   */
  stop(): Promise<void> {
    if (!this.#stopping) {
      this.#stopping = true;
      const { app, drain } = this.#options;
      app.drain('stop');
      this.#begin(drain);
      this.letGo();
    }
    return this.#over ?? Promise.resolve();
  }

  /** Stops after another process has taken over: serves requests over open connections until they end. Resolves when everything is closed. */
  retire(): Promise<void> {
    if (this.#over === undefined) {
      this.#options.app.drain('replaced');
      this.#begin(this.#options.reload);
    }
    return this.#over ?? Promise.resolve();
  }

  /** Closes, after {@link retire}, the connections over which no call runs, so that the process ends with its last call. */
  letGo(): void {
    const { connections } = this.#options;
    connections.closeIdle();
    this.#sweeping ??= setInterval(() => connections.closeIdle(), sweepEvery);
  }

  #begin(time: number): void {
    const { app, connections } = this.#options;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => {
      app.endAll();
      this.#stopping = true;
      this.#isLate = true;
      this.#deadline = setTimeout(() => connections.closeAll(), lastWords);
    }, time);
    this.#over ??= this.#finish();
  }

  async #finish(): Promise<void> {
    const { connections, detached, close } = this.#options;
    await connections.takeNoMore();
    while (!this.#isLate && detached.running > 0) await pass(lookEvery);
    clearTimeout(this.#deadline);
    clearInterval(this.#sweeping);
    await close();
  }
}
