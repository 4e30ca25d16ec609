/** Reads sums in a thread, so that the worker that serves calls neither writes the statements nor takes in the rows. */
import { extname } from 'node:path';
import type { Database } from '../../state/database/index.ts';
import type { SumsReader } from './sums-reader.ts';

/** A question to the thread: a function of {@link SumsReader}, and what it is called with. */
export type SumsQuestion = {
  readonly [Name in keyof SumsReader]: { readonly name: Name; readonly values: Parameters<SumsReader[Name]> };
}[keyof SumsReader];

/** Opens the sums of a log, to be read in a thread. Undefined for a database in memory. */
export function openSumsThread(database: Database): SumsReader | undefined {
  const program = new URL(`sums-thread-program${extname(import.meta.url)}`, import.meta.url);
  const thread = database.startThread(program);
  if (thread === undefined) return undefined;
  const running = new Map<string, Promise<unknown>>();
  /** Several tabs of a browser ask the same at the same time. */
  const ask = (question: SumsQuestion): Promise<unknown> => {
    const text = JSON.stringify(question);
    const known = running.get(text);
    if (known !== undefined) return known;
    const asked = thread.ask(question).finally(() => running.delete(text));
    running.set(text, asked);
    return asked;
  };
  return {
    sums: (...values) => ask({ name: 'sums', values }) as ReturnType<SumsReader['sums']>,
    sumsInJson: (...values) => ask({ name: 'sumsInJson', values }) as ReturnType<SumsReader['sumsInJson']>,
    spentByKeys: (...values) => ask({ name: 'spentByKeys', values }) as ReturnType<SumsReader['spentByKeys']>,
  };
}
