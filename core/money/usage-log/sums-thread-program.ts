/** The program of the thread that reads sums. */
import { answerQuestions } from '../../state/database/thread-answers.ts';
import { openThreadDatabase } from '../../state/database/thread-database.ts';
import { createSumsReader } from './sums-reader.ts';
import type { SumsQuestion } from './sums-thread.ts';

const { close, ...reads } = await openThreadDatabase();
const reader = createSumsReader(reads);

answerQuestions<SumsQuestion>((question) => {
  switch (question.name) {
    case 'sums':
      return reader.sums(...question.values);
    case 'sumsInJson':
      return reader.sumsInJson(...question.values);
    case 'spentByKeys':
      return reader.spentByKeys(...question.values);
  }
}, close);
