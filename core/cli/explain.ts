import { ConfigError } from '../config/config.ts';
import { PostgresError } from '../state/database/postgres-error.ts';

/** What went wrong, for a person: what we throw is a sentence; what the language throws is a bug, and its report needs the stack. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  if (!(error instanceof Error)) return String(error);
  return error.constructor === Error || error instanceof PostgresError
    ? error.message
    : (error.stack ?? error.message);
}
