/** Serves messages of workers in the primary process: shared rate counts, channel health, and questions to other workers. */
import { RatesServer } from '../money/rates/server.ts';
import { HealthServer } from '../routing/health/primary.ts';
import { PeersServer } from '../state/links/peers-primary.ts';
import type { Question, WorkerProcess } from './worker-process.ts';

/** Messages of a worker that concern other workers. */
export type Shared = Extract<Question, { type: 'rates' | 'health' | 'peers' }>;

/** State that the workers of one gateway share. */
export class SharedState {
  readonly #workers = new Map<number, WorkerProcess>();
  readonly #rates = new RatesServer((id, answer) => this.#workers.get(id)?.send({ type: 'rates', answer }));
  readonly #health = new HealthServer();
  readonly #peers = new PeersServer();

  /** Adds a worker that serves. */
  join(worker: WorkerProcess): void {
    this.#workers.set(worker.id, worker);
    this.#peers.join(worker.id, (news) => worker.offer({ type: 'peers', news }));
  }

  /** Removes a worker that has ended. */
  forget({ id }: WorkerProcess): void {
    this.#workers.delete(id);
    this.#rates.forget(id);
    this.#health.forget(id);
    this.#peers.forget(id);
  }

  receive(worker: WorkerProcess, shared: Shared): void {
    switch (shared.type) {
      case 'rates':
        this.#rates.receive(worker.id, shared.question);
        return;
      case 'health':
        this.#health.receive(worker.id, shared.word, (news) => worker.offer({ type: 'health', news }));
        return;
      case 'peers':
        this.#peers.receive(worker.id, shared.word);
    }
  }
}
