import { onTestFinished } from 'vitest';
import type { Step } from '../../../../core/state/database/migrations.ts';
import { openPostgres, type PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { schema } from '../../../../core/state/database/tables/index.ts';

/** Opens a database of a server, with the tables of these steps. It is closed with the test. */
export function openAt(
  target: Parameters<typeof openPostgres>[0],
  steps: readonly Step[] = schema,
): PostgresDatabase {
  const database = openPostgres(target, steps);
  onTestFinished(() => database.close());
  return database;
}
