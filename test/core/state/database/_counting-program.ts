/** Program of a thread that runs statements of some milliseconds, one at a time, and counts them. */
import { setTimeout as pause } from 'node:timers/promises';
import { Semaphore } from '../../../../core/sdk/semaphore.ts';
import { answerQuestions } from '../../../../core/state/database/thread-answers.ts';
import { limitConcurrency } from '../../../../core/state/database/limit-concurrency.ts';

let count = 0;
const query = limitConcurrency(async () => {
  await pause(10);
  count += 1;
  return [];
}, new Semaphore(1));

answerQuestions<{ readonly statements: number } | 'count'>(
  async (question) => {
    if (question === 'count') return count;
    for (let index = 0; index < question.statements; index += 1)
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      await query('', []);
    return 'done';
  },
  async () => {},
);
