/*
 * Queries that all workers of a gateway answer, for example the metrics of all workers in one scrape, or the calls of all workers in one view.
 */

import type { WorkerAnswer, WorkerAnswers, Workers } from '../../sdk/author/workers.ts';

/** Numbers that only grow, by name. */
export type Totals = Readonly<Record<string, number>>;

/** See `WorkerAnswer` of sdk/author/workers.ts. */
export type PeerAnswer = WorkerAnswer;

/** See `WorkerAnswers` of sdk/author/workers.ts. */
export type Gathered = WorkerAnswers;

/** Queries to the processes of this gateway. All parts and plugins share one table of topics. */
export type Peers = Workers;

/** Answers a query, which may come from a process that runs another version of the code. An error counts as no answer. */
export type Answerer = Parameters<Workers['answer']>[1];

/** Returns the workers for a plugin, with the plugin's name in front of each topic. */
export function workersOf(peers: Peers, plugin: string): Workers {
  const own = (topic: string): string => `${plugin}: ${topic}`;
  return {
    answer: (topic, answerer) => peers.answer(own(topic), answerer),
    gather: (topic, question) => peers.gather(own(topic), question),
    leave: (topic, totals) => peers.leave(own(topic), totals),
  };
}

/** Answerers of one process, by topic. */
export class Answerers {
  readonly #byTopic = new Map<string, Answerer>();

  /** See {@link Peers.answer}. */
  add(topic: string, answerer: Answerer): () => void {
    this.#byTopic.set(topic, answerer);
    return () => {
      if (this.#byTopic.get(topic) === answerer) this.#byTopic.delete(topic);
    };
  }

  /** Returns the answer for a topic; undefined when there is no answerer or it fails. Never rejects. */
  async respond(topic: string, question: unknown): Promise<PeerAnswer | undefined> {
    try {
      return await this.#byTopic.get(topic)?.(question);
    } catch {
      return undefined;
    }
  }
}

/** Peers of a gateway that has one process: it answers its own queries. */
export class OnlyPeer implements Peers {
  readonly #answerers = new Answerers();

  answer(topic: string, answerer: Answerer): () => void {
    return this.#answerers.add(topic, answerer);
  }

  async gather(topic: string, question?: unknown): Promise<Gathered> {
    const answer = await this.#answerers.respond(topic, question);
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
