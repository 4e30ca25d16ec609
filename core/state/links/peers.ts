/*
 * How a part of the gateway asks itself in every process: the metrics of all workers as one scrape, the calls of all workers in one view.
 */

/** Numbers that only grow, by name. */
export type Totals = Readonly<Record<string, number>>;

/** What a process answers: both parts travel between processes, as JSON does. */
export interface PeerAnswer {
  readonly value: unknown;
  /** What is added up over all processes there were, also those that have ended meanwhile. */
  readonly totals?: Totals;
}

/** What came of asking all processes. */
export interface Gathered {
  /** One for each process that answered. `from` is no other process's number, as long as this gateway runs. */
  readonly answers: readonly { readonly from: number; readonly value: unknown }[];
  /** Processes that gave no answer in time. */
  readonly silent: readonly number[];
  /** The sums of all totals. Whoever is silent counts with what it answered last, whoever has ended with what it left. */
  readonly totals: Totals;
}

/** Answers a question, which may come from a process that runs another version of the code. What it throws counts as no answer. */
export type Answerer = (question: unknown) => PeerAnswer | Promise<PeerAnswer>;

/** The processes of this gateway, as they ask each other. For what is rarer than calls: a scrape, a page that is open. */
export interface Peers {
  /** Answers what is asked under this name, until the returned function is called. */
  answer(topic: string, answerer: Answerer): () => void;
  /** Asks all processes, this one included; a second at most. Undefined when nobody could be asked. Never rejects. */
  gather(topic: string, question?: unknown): Promise<Gathered | undefined>;
  /** Leaves totals behind, before this process ends. Resolves when they are on their way. */
  leave(topic: string, totals: Totals): Promise<void>;
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
