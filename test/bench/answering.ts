/** The child's side of the bench: answers the parent's questions over IPC, and ends when the parent does. */

interface Question {
  readonly number: number;
  readonly question: string;
  readonly params: unknown;
}

/** Answers each question with what its handler gives, then says that the process is ready. `ready` goes with that first word. */
export function answering(
  handlers: Readonly<Record<string, (params: never) => unknown>>,
  ready: unknown,
): void {
  process.on('message', (message) => {
    const { number, question, params } = message as Question;
    const reply = async (): Promise<void> => {
      try {
        const handler = handlers[question];
        if (handler === undefined) throw new Error(`There is no question "${question}".`);
        process.send?.({ number, answer: await handler(params as never) });
      } catch (error) {
        process.send?.({ number, failure: error instanceof Error ? error.message : String(error) });
      }
    };
    void reply();
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ ready });
}

/** What a process has used so far. */
export interface Used {
  /** Microseconds of CPU time, user and system. */
  readonly cpu: number;
  /** Bytes of memory held, after a full collection when the process allows one. */
  readonly rss: number;
}

/** The questions that every proxy answers. */
export const measuring = {
  used(): Used {
    const { user, system } = process.cpuUsage();
    return { cpu: user + system, rss: process.memoryUsage.rss() };
  },
  settled(): Used {
    globalThis.gc?.();
    globalThis.gc?.();
    return measuring.used();
  },
};
