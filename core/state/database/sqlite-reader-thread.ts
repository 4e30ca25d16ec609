/** The program of the thread that reads SQLite for operators. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Answer, Question } from './sqlite-reader.ts';
import type { Row } from './sql-values.ts';

const connection = new DatabaseSync(String(workerData), { readOnly: true, timeout: 5_000 });
// Sorting and grouping stay in memory: 64 MiB at the most.
connection.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536');
const statements = new Map<string, StatementSync>();
/** More texts than the gateway has questions. */
const mostStatements = 200;

parentPort?.on('message', ({ id, sql, values }: Question) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
  parentPort?.postMessage(answerTo(id, sql, values));
});

function answerTo(id: number, sql: string, values: Question['values']): Answer {
  try {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= mostStatements) statements.clear();
      statements.set(sql, (statement = connection.prepare(sql)));
    }
    return { id, rows: statement.all(...values) as readonly Row[] };
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) };
  }
}
