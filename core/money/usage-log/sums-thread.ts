/** Reads sums in a thread, so that the worker that serves calls neither writes the statements nor takes in the rows. */
import { extname } from 'node:path';
import type { Database } from '../../state/database/index.ts';
import { readerSignal } from '../../state/waiting-reader.ts';
import type { SumsReader } from './sums-reader.ts';

/** A question to the thread: a function of {@link SumsReader}, and what it is called with. */
export type SumsQuestion = {
  readonly [Name in keyof SumsReader]: { readonly name: Name; readonly values: Parameters<SumsReader[Name]> };
}[keyof SumsReader];

/** A question that one or more clients wait for. */
interface SharedQuestion {
  readonly answer: Promise<unknown>;
  readonly abandoned: AbortController;
  askers: number;
}

/** Returns the answer for one more client, which may leave. The question is abandoned, and `forget` is called, when the last client has left. */
function answerFor(
  shared: SharedQuestion,
  signal: AbortSignal | undefined,
  forget: () => void,
): Promise<unknown> {
  shared.askers += 1;
  if (signal === undefined) return shared.answer;
  return new Promise((resolve, reject) => {
    const left = (): void => {
      reject(signal.reason as Error);
      shared.askers -= 1;
      if (shared.askers > 0) return;
      forget();
      shared.abandoned.abort(signal.reason);
    };
    if (signal.aborted) {
      left();
      return;
    }
    signal.addEventListener('abort', left, { once: true });
    shared.answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', left));
  });
}

/** Opens the sums of a log, to be read in a thread. Undefined for a database in memory. */
export function openSumsThread(database: Database): SumsReader | undefined {
  const program = new URL(`sums-thread-program${extname(import.meta.url)}`, import.meta.url);
  const thread = database.startThread(program);
  if (thread === undefined) return undefined;
  const running = new Map<string, SharedQuestion>();
  /** Several tabs of a browser ask the same at the same time. */
  const query = (question: SumsQuestion): Promise<unknown> => {
    const text = JSON.stringify(question);
    let shared = running.get(text);
    if (shared === undefined) {
      const abandoned = new AbortController();
      const answer = thread.ask(question, abandoned.signal).finally(() => {
        if (running.get(text) === shared) running.delete(text);
      });
      // Handled here, because every client may have left when the question fails.
      answer.catch(() => {});
      shared = { answer, abandoned, askers: 0 };
      running.set(text, shared);
    }
    const known = shared;
    return answerFor(known, readerSignal(), () => {
      if (running.get(text) === known) running.delete(text);
    });
  };
  return {
    sums: (...values) => query({ name: 'sums', values }) as ReturnType<SumsReader['sums']>,
    sumsInJson: (...values) => query({ name: 'sumsInJson', values }) as ReturnType<SumsReader['sumsInJson']>,
    spentByKeys: (...values) =>
      query({ name: 'spentByKeys', values }) as ReturnType<SumsReader['spentByKeys']>,
  };
}
