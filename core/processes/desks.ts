import { RatesDesk } from '../money/rates/primary.ts';
import { HealthDesk } from '../routing/health/primary.ts';
import { PeersDesk } from '../state/links/peers-primary.ts';
import type { Question, WorkerProcess } from './worker-process.ts';

/** What a worker asks or tells that concerns its peers. */
export type Shared = Extract<Question, { type: 'rates' | 'health' | 'peers' }>;

/** Where workers count together, tell each other how providers are, and ask each other. */
export class Desks {
  readonly #rates = new RatesDesk();
  readonly #health = new HealthDesk();
  readonly #peers = new PeersDesk();

  /** The worker serves from now on. */
  join(worker: WorkerProcess): void {
    this.#peers.join(worker.id, (news) => worker.offer({ type: 'peers', news }));
  }

  /** The worker has ended. */
  forget({ id }: WorkerProcess): void {
    this.#rates.forget(id);
    this.#health.forget(id);
    this.#peers.forget(id);
  }

  hear(worker: WorkerProcess, shared: Shared): void {
    switch (shared.type) {
      case 'rates': {
        const answer = this.#rates.ask(worker.id, shared.question);
        if (answer !== undefined) worker.tell({ type: 'rates', answer });
        return;
      }
      case 'health':
        this.#health.hear(worker.id, shared.word, (news) => worker.offer({ type: 'health', news }));
        return;
      case 'peers':
        this.#peers.hear(worker.id, shared.word);
    }
  }
}
