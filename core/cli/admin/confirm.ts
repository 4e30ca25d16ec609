/** Confirmation before something is deleted. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { JsonObject } from '../../model/json.ts';
import { UsageError } from '../command.ts';
import { CommandFailure } from './failure.ts';
import type { Given } from './options.ts';
import { sentenceOf } from './text.ts';

/** Asks the user a question. Resolves when the answer is yes, or at once with `--yes`. Rejects otherwise. */
export async function confirm(question: string, thing: JsonObject, given: Given): Promise<void> {
  if (given['yes'] === true) return;
  const prompt = sentenceOf(question, thing);
  if (process.stdin.isTTY !== true)
    throw new UsageError(`${prompt} There is no terminal to confirm it. To confirm add --yes.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-D and Ctrl-C close the terminal, and `question` then never resolves.
  const closed = once(terminal, 'close').then(() => '');
  const answer = await Promise.race([terminal.question(`${prompt} [y/N] `).catch(() => ''), closed]).finally(
    () => terminal.close(),
  );
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new CommandFailure('Cancelled. Nothing was changed.');
}
