/** Limits how many requests run on one connection, and how many wait. */
import { GatewayError } from 'sluice';

/** A counting semaphore whose queue is bounded. */
export class Permits {
  readonly #name: string;
  readonly #limit: number;
  readonly #maxWaiting: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /** `name` is that of the server, for errors. */
  constructor(name: string, limit: number) {
    this.#name = name;
    this.#limit = limit;
    this.#maxWaiting = 4 * limit;
  }

  /** Acquires a permit, which the returned function releases. Rejects when the queue is full or `signal` aborts. */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#running < this.#limit) this.#running += 1;
    else {
      if (this.#waiting.size >= this.#maxWaiting)
        throw new GatewayError(
          'server_is_overloaded',
          `Too many requests wait for the MCP server "${this.#name}". Retry after 1 second.`,
          { retryAfter: 1 },
        );
      await this.#wait(signal);
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#release();
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.delete(go);
        reject(signal.reason as Error);
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running -= 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
