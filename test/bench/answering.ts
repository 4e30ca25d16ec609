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
