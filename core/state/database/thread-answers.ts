/** Answers the questions that a thread is asked. */
import { parentPort } from 'node:worker_threads';
import { readUntil } from '../waiting-reader.ts';
import { PostgresError } from './postgres-error.ts';
import type { FromThread, ToThread } from './reading-thread.ts';

/** Answers questions until the thread is to end; `close` runs then. The signal of a question that was abandoned is aborted: see {@link readUntil}. Bytes that are a member of an answer are handed over without a copy. */
export function answerQuestions<Question>(
  answer: (question: Question) => unknown,
  close: () => Promise<void>,
): void {
  const running = new Map<number, AbortController>();
  parentPort?.on('message', async (message: ToThread) => {
    if ('isOver' in message) {
      await close().catch(() => {});
      parentPort?.close();
      return;
    }
    if ('abandoned' in message) {
      running.get(message.abandoned)?.abort(new Error('Nobody waits for the answer.'));
      return;
    }
    const { id } = message;
    const controller = new AbortController();
    running.set(id, controller);
    try {
      send({ id, answer: await readUntil(controller.signal, () => answer(message.question as Question)) });
    } catch (error) {
      const failure = error instanceof Error ? error.message : String(error);
      const isOfServer = error instanceof PostgresError;
      send({
        id,
        failure,
        isOfServer,
        ...(isOfServer && error.code !== undefined ? { code: error.code } : {}),
      });
    } finally {
      running.delete(id);
    }
  });
}

/** Sends a message to the thread that asks. */
export function send(message: FromThread): void {
  parentPort?.postMessage(message, 'answer' in message ? bytesIn(message.answer) : []);
}

function bytesIn(answer: unknown): ArrayBuffer[] {
  if (typeof answer !== 'object' || answer === null) return [];
  return Object.values(answer).flatMap((value) =>
    value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [],
  );
}
