import type { GatewayError } from '../../sdk/errors.ts';
import type { Visit } from '../../sdk/health.ts';
import type { KeyBreaker } from './places.ts';

/** Who is told how visits go. */
export interface VisitJudge {
  answered(visit: CallVisit): void;
  succeeded(visit: CallVisit): void;
  failed(visit: CallVisit, error: GatewayError): void;
  left(visit: CallVisit): void;
}

/** One attempt. What is told after its outcome is passed over. */
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

/** The visit of a gateway that keeps no book. */
export const unwatched: Visit = { answered() {}, succeeded() {}, failed() {}, left() {} };
