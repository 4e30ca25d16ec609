import { maskSecrets } from '../log.ts';
import { ConfigError } from '../config/config.ts';
import { CommandFailure } from './admin/failure.ts';
import { PostgresError } from '../state/database/postgres-error.ts';

/**
 * Returns the message of an error with secrets masked. Adds the stack for errors of the language, because they are bugs, and their report
 * needs it.
 */
export function explain(error: unknown): string {
  return maskSecrets(describe(error));
}

function describe(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  if (!(error instanceof Error)) return String(error);
  return error.constructor === Error || error instanceof PostgresError || error instanceof CommandFailure
    ? error.message
    : (error.stack ?? error.message);
}
