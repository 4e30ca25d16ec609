/** Reports the outcome of one attempt to its circuit breakers, at most once. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { AttemptReport } from '../../sdk/health.ts';
import type { KeyBreaker } from './breakers.ts';

/** Receiver of reports. */
export interface ReportReceiver {
  answered(attempt: ReportedAttempt): void;
  succeeded(attempt: ReportedAttempt): void;
  failed(attempt: ReportedAttempt, error: GatewayError): void;
  left(attempt: ReportedAttempt): void;
}

/** One attempt. Reports after its outcome are ignored. */
export class ReportedAttempt implements AttemptReport {
  readonly #receiver: ReportReceiver;
  readonly key: KeyBreaker;
  readonly model: string;
  #over = false;

  constructor(receiver: ReportReceiver, key: KeyBreaker, model: string) {
    this.#receiver = receiver;
    this.key = key;
    this.model = model;
  }

  answered(): void {
    if (!this.#over) this.#receiver.answered(this);
  }

  succeeded(): void {
    if (this.#end()) this.#receiver.succeeded(this);
  }

  failed(error: GatewayError): void {
    if (this.#end()) this.#receiver.failed(this, error);
  }

  left(): void {
    if (this.#end()) this.#receiver.left(this);
  }

  #end(): boolean {
    const first = !this.#over;
    this.#over = true;
    return first;
  }
}

/** Attempt of which nothing is recorded. */
export const unwatched: AttemptReport = { answered() {}, succeeded() {}, failed() {}, left() {} };
