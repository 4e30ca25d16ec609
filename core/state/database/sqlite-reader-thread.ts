/** The program of the thread that reads SQLite for operators. */
import { workerData } from 'node:worker_threads';
import type { ThreadTarget } from './reading-thread.ts';
import type { SqlValue } from './sql-values.ts';
import { openSqliteToRead } from './sqlite-to-read.ts';
import { answerQuestions } from './thread-answers.ts';

/** A SELECT, whose answer is its rows. */
export interface SqliteQuestion {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

const { path } = workerData as Extract<ThreadTarget, { kind: 'sqlite' }>;
const read = openSqliteToRead(path);

answerQuestions<SqliteQuestion>(
  ({ sql, values }) => read(sql, values),
  async () => {},
);
