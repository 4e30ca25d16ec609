/** Requests of plugins between the workers of one gateway. */

/**
 * Answer of one worker. Both parts travel between processes as JSON.
 *
 * @example
 * const answer: WorkerAnswer = { value: { open: sessions.size }, totals: { sessions: sessionsSoFar } };
 */
export interface WorkerAnswer {
  readonly value: unknown;
  /** Numbers that only grow, by name. They are added up over all workers, also over those that have ended meanwhile. */
  readonly totals?: Readonly<Record<string, number>>;
}

/**
 * Answers of all workers to one question.
 *
 * @example
 * const all = gathered?.answers.map(({ value }) => value) ?? [];
 */
export interface WorkerAnswers {
  /** One for each worker that answered. `from` is the number of no other worker, as long as this gateway runs. */
  readonly answers: readonly { readonly from: number; readonly value: unknown }[];
  /** Workers that gave no answer in time. */
  readonly silent: readonly number[];
  /** Sums of all totals. A silent worker counts with its last answer, a worker that has ended with what it left. */
  readonly totals: Readonly<Record<string, number>>;
}

/**
 * The workers of this gateway, for what is rarer than calls: a scrape, a page that is open. A gateway that is one process asks itself.
 *
 * @example
 * tools.onClose(tools.workers.answer('sessions', () => ({ value: sessions.size })));
 * const gathered = await tools.workers.gather('sessions');
 */
export interface Workers {
  /**
   * Answers the questions of this topic, until the returned function is called. Topics of other plugins are apart. The question may come from a
   * worker that runs another version of the plugin. An answerer that throws gives no answer.
   */
  answer(topic: string, answerer: (question: unknown) => WorkerAnswer | Promise<WorkerAnswer>): () => void;
  /** Sends a request to all workers, including this one, with a timeout of one second. Resolves with undefined when none was available. Never rejects. */
  gather(topic: string, question?: unknown): Promise<WorkerAnswers | undefined>;
  /** Leaves totals behind before this worker ends. Resolves when they are on their way. */
  leave(topic: string, totals: Readonly<Record<string, number>>): Promise<void>;
}
