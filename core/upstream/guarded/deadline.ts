import type { Call } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';

/** Time limit for work in sequential steps. Ends with the call at the latest. */
export class Deadline {
  /** Error with which the running step rejects at the time limit; undefined for an ordinary failure. */
  reason: (() => GatewayError) | undefined;
  #over: Error | undefined;
  #stop: ((reason: Error) => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #forget: () => void;

  constructor(call: Pick<Call, 'onEnd'>, milliseconds: number) {
    this.#timer = setTimeout(() => this.#end(this.reason?.() ?? late), milliseconds);
    this.#forget = call.onEnd(() => this.#end(left()));
  }

  /** Runs a step. `begin` returns a function that stops the step; it is not called after the step has settled. */
  during<T>(
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) {
        reject(this.#over);
        return;
      }
      let settled = false;
      const settle = (): boolean => {
        if (settled) return false;
        settled = true;
        this.#stop = undefined;
        return true;
      };
      const stop = begin(
        (value) => {
          if (settle()) resolve(value);
        },
        (error) => {
          if (settle()) reject(error);
        },
      );
      if (settled) return;
      this.#stop = (reason) => {
        if (!settle()) return;
        reject(reason);
        stop();
      };
    });
  }

  /** Clears the timer and the references to the call. */
  end(): void {
    clearTimeout(this.#timer);
    this.#forget();
  }

  #end(reason: Error): void {
    this.#over ??= reason;
    this.#stop?.(reason);
  }
}

/** One shared object, because the stack of the error is never read. */
const late = new Error('The time limit was reached.');

function left(): GatewayError {
  return new GatewayError('client_closed_request', 'The client left while a file was being fetched.');
}
