/** What statements of a list read in PostgreSQL, by EXPLAIN ANALYZE. */
import type { PostgresDatabase } from '../../core/state/database/postgres.ts';

/** What a statement came to. */
export interface Explained {
  /** Rows of the usage log's tables that were looked at, those that did not fit included. */
  readonly rows: number;
  /** Milliseconds of the server: planning and execution. */
  readonly ms: number;
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly Node[];
}

interface Plan {
  readonly Plan: Node;
  readonly 'Planning Time': number;
  readonly 'Execution Time': number;
}

/** Runs a statement and says what it read. `settings`: a statement before it, for its transaction. */
export async function explain(
  database: PostgresDatabase,
  sql: string,
  values: readonly (string | number)[],
  settings = '',
): Promise<Explained> {
  let position = 0;
  const numbered = sql.replaceAll('?', () => `$${(position += 1)}`);
  const [row] = await database.transaction(async (session) => {
    await session.query(`SET LOCAL statement_timeout = 0; ${settings}`);
    return session.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${numbered}`, values, { patience: 60_000 });
  });
  const [plan] = (row?.['QUERY PLAN'] ?? []) as readonly Plan[];
  if (plan === undefined) throw new Error('There is no plan.');
  let rows = 0;
  const walk = (node: Node): void => {
    const { 'Node Type': type, 'Relation Name': relation = '', 'Actual Loops': loops } = node;
    if (type.endsWith('Scan') && relation.startsWith('usage_') && loops > 0) {
      const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
      rows += Math.round((node['Actual Rows'] + removed) * loops);
    }
    for (const inner of node.Plans ?? []) walk(inner);
  };
  walk(plan.Plan);
  return { rows, ms: plan['Planning Time'] + plan['Execution Time'] };
}
