/*
 * How a part of the gateway asks itself in every process: the metrics of all workers as one scrape, the calls of all workers in one view.
 */

import type { WorkerAnswer, WorkerAnswers, Workers } from '../../sdk/author/workers.ts';

/** Numbers that only grow, by name. */
export type Totals = Readonly<Record<string, number>>;

/** See `WorkerAnswer` of sdk/author/workers.ts. */
export type PeerAnswer = WorkerAnswer;

/** See `WorkerAnswers` of sdk/author/workers.ts. */
export type Gathered = WorkerAnswers;

/** The processes of this gateway, as they ask each other. The topics of all parts and plugins are in one table. */
export type Peers = Workers;

/** Answers a question, which may come from a process that runs another version of the code. What it throws counts as no answer. */
export type Answerer = Parameters<Workers['answer']>[1];

/** Returns the workers as a plugin asks them: under topics of its own. */
export function workersOf(peers: Peers, plugin: string): Workers {
  const own = (topic: string): string => `${plugin}: ${topic}`;
  return {
    answer: (topic, answerer) => peers.answer(own(topic), answerer),
    gather: (topic, question) => peers.gather(own(topic), question),
    leave: (topic, totals) => peers.leave(own(topic), totals),
  };
}

/** Those in one process who answer. */
export class Answerers {
  readonly #byTopic = new Map<string, Answerer>();

  /** See {@link Peers.answer}. */
  add(topic: string, answerer: Answerer): () => void {
    this.#byTopic.set(topic, answerer);
    return () => {
      if (this.#byTopic.get(topic) === answerer) this.#byTopic.delete(topic);
    };
  }

  /** Undefined when nobody answers, or could not. Never rejects. */
  async ask(topic: string, question: unknown): Promise<PeerAnswer | undefined> {
    try {
      return await this.#byTopic.get(topic)?.(question);
    } catch {
      return undefined;
    }
  }
}

/** The only process of a gateway: it asks itself. */
export class OnlyPeer implements Peers {
  readonly #answerers = new Answerers();

  answer(topic: string, answerer: Answerer): () => void {
    return this.#answerers.add(topic, answerer);
  }

  async gather(topic: string, question?: unknown): Promise<Gathered> {
    const answer = await this.#answerers.ask(topic, question);
    return {
      answers: answer === undefined ? [] : [{ from: process.pid, value: answer.value }],
      silent: answer === undefined ? [process.pid] : [],
      totals: answer?.totals ?? {},
    };
  }

  leave(): Promise<void> {
    return Promise.resolve();
  }
}
