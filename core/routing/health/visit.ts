/** Reports the outcome of one attempt to its circuit breakers, at most once. */
import type { GatewayError } from '../../sdk/errors.ts';
import type { Visit } from '../../sdk/health.ts';
import type { KeyBreaker } from './places.ts';

/** Receiver of reports. */
export interface VisitJudge {
  answered(visit: CallVisit): void;
  succeeded(visit: CallVisit): void;
  failed(visit: CallVisit, error: GatewayError): void;
  left(visit: CallVisit): void;
}

/** One attempt. Reports after its outcome are ignored. */
export class CallVisit implements Visit {
  readonly #judge: VisitJudge;
  readonly key: KeyBreaker;
  readonly model: string;
  #over = false;

  constructor(judge: VisitJudge, key: KeyBreaker, model: string) {
    this.#judge = judge;
    this.key = key;
    this.model = model;
  }

  answered(): void {
    if (!this.#over) this.#judge.answered(this);
  }

  succeeded(): void {
    if (this.#end()) this.#judge.succeeded(this);
  }

  failed(error: GatewayError): void {
    if (this.#end()) this.#judge.failed(this, error);
  }

  left(): void {
    if (this.#end()) this.#judge.left(this);
  }

  #end(): boolean {
    const first = !this.#over;
    this.#over = true;
    return first;
  }
}

/** Attempt of which nothing is recorded. */
export const unwatched: Visit = { answered() {}, succeeded() {}, failed() {}, left() {} };
