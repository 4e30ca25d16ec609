/** Connects a worker to the primary process: receives orders, and sends messages about rates, health, other workers and reloads. */
import type { HealthNews, HealthLine } from '../routing/health/primary.ts';
import type { RatesAnswer, RatesLine, RatesRecall } from '../money/rates/index.ts';
import { watchWaits } from './handed-connections.ts';
import type { StartOrder, ToPrimary, ToWorker } from './messages.ts';
import { WorkerPeers, type PrimaryPeerMessage } from '../state/links/peers-primary.ts';
import type { Processes, ProcessesStatus, ReloadOutcome } from '../state/links/processes.ts';
import type { ProcessLines } from '../config/gateway-services.ts';

/** Orders of the primary process to a worker. */
export interface Orders {
  start(order: StartOrder): void;
  retire(): void;
  letGo(): void;
  announce(): void;
  stop(): void;
}

/** The worker's end of the connection: the IPC channel of node:cluster, which also carries client connections. */
export class PrimaryLink {
  readonly #pending = new Map<number, (answer: ToWorker) => void>();
  #ids = 0;
  #onRates: ((news: RatesAnswer | RatesRecall) => void) | undefined;
  #onHealth: ((news: HealthNews) => void) | undefined;
  #onPeers: ((news: PrimaryPeerMessage) => void) | undefined;
  readonly #waited = watchWaits();

  constructor(orders: Orders) {
    process.on('message', (message: ToWorker) => {
      switch (message.type) {
        case 'start':
          orders.start(message);
          return;
        case 'retire':
          orders.retire();
          return;
        case 'let-go':
          orders.letGo();
          return;
        case 'announce':
          orders.announce();
          return;
        case 'stop':
          orders.stop();
          return;
        case 'rates':
          this.#onRates?.(message.answer);
          return;
        case 'health':
          this.#onHealth?.(message.news);
          return;
        case 'peers':
          this.#onPeers?.(message.news);
          return;
        case 'reloaded':
        case 'told':
          this.#pending.get(message.id)?.(message);
          this.#pending.delete(message.id);
      }
    });
    this.send({ type: 'awake' });
  }

  /** Sends a message. Returns false when the primary has exited, after which this process exits. `sent` runs when the message is sent. */
  send(message: ToPrimary, sent?: () => void): boolean {
    if (!process.connected || process.send === undefined) {
      sent?.();
      return false;
    }
    // The error means that the primary has exited. Then node:cluster ends this process.
    process.send(message, undefined, {}, () => sent?.());
    return true;
  }

  /** Returns the connections of this process to the others. */
  processes(worker: number, workers: number): Processes & ProcessLines {
    const rates: RatesLine = {
      send: (question) => this.send({ type: 'rates', question }),
      listen: (listener) => {
        this.#onRates = listener;
      },
    };
    const health: HealthLine = {
      send: (word) => this.send({ type: 'health', word }),
      listen: (listener) => {
        this.#onHealth = listener;
      },
    };
    const peers = new WorkerPeers({
      send: (word, sent) => this.send({ type: 'peers', word }, sent),
      listen: (listener) => {
        this.#onPeers = listener;
      },
    });
    return {
      worker,
      workers,
      rates,
      health,
      waited: this.#waited,
      peers,
      reload: (request = {}) =>
        this.#ask<ReloadOutcome>(
          (id) => ({ type: 'reload', id, request }),
          (answer) => (answer.type === 'reloaded' ? answer.outcome : undefined),
        ),
      status: () =>
        this.#ask<ProcessesStatus>(
          (id) => ({ type: 'status', id }),
          (answer) => (answer.type === 'told' ? answer.status : undefined),
        ),
    };
  }

  #ask<Answer>(
    question: (id: number) => ToPrimary,
    read: (message: ToWorker) => Answer | undefined,
  ): Promise<Answer> {
    return new Promise((resolve) => {
      const id = (this.#ids += 1);
      this.#pending.set(id, (message) => {
        const answer = read(message);
        if (answer !== undefined) resolve(answer);
      });
      this.send(question(id));
    });
  }
}
