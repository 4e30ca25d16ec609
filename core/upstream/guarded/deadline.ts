import type { Call } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';

/** The time that a piece of work may take, in steps of which one runs at a time. It is over with the call as well. */
export class Deadline {
  /** What the running step rejects with when its time is over; undefined stands for an ordinary failure. */
  reason: (() => GatewayError) | undefined;
  #over: Error | undefined;
  #stop: ((reason: Error) => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #forget: () => void;

  constructor(call: Pick<Call, 'onEnd'>, milliseconds: number) {
    this.#timer = setTimeout(() => this.#end(this.reason?.() ?? late), milliseconds);
    this.#forget = call.onEnd(() => this.#end(left()));
  }

  /** Runs a step; what `begin` returns stops it. A step that has settled is not stopped any more. */
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

  /** Lets go of the timer and of the call. */
  end(): void {
    clearTimeout(this.#timer);
    this.#forget();
  }

  #end(reason: Error): void {
    this.#over ??= reason;
    this.#stop?.(reason);
  }
}

/** One object: nobody reads where it was made. */
const late = new Error('The time limit was reached.');

function left(): GatewayError {
  return new GatewayError('client_closed_request', 'The client left while a file was being fetched.');
}
