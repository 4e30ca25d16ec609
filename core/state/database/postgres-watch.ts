/** Breaks PostgreSQL connections on which a statement makes no progress, and explains failures of the database to the operator. */
import { certificateProblem } from '../certificate-problem.ts';
import type { Duplex } from 'node:stream';
import type { ClientBase } from 'pg';
import { PostgresError } from './postgres-error.ts';

/** Interval between two checks of a statement, in milliseconds. */
const LOOK = 100;

/** Runs a statement. Closes the connection when no bytes have moved on it for `patience` ms, because a hanging server ends no statement itself. */
export async function watched<Result>(
  client: ClientBase,
  url: string,
  patience: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Moving } }).connection;
  let moved = stream.bytesRead + stream.bytesWritten;
  // Counts checks instead of time, so that a gateway that was suspended does not close the connection.
  let looks = 0;
  let silent = false;
  const timer = setInterval(() => {
    const now = stream.bytesRead + stream.bytesWritten;
    if (now !== moved) {
      moved = now;
      looks = 0;
      return;
    }
    looks += 1;
    if (looks * LOOK < patience) return;
    silent = true;
    stream.destroy(new Error('no answer'));
  }, LOOK);
  try {
    return await work();
  } catch (error) {
    if (silent) throw silence(url);
    throw explain(url, error);
  } finally {
    clearInterval(timer);
  }
}

/** A socket, with or without TLS. */
type Moving = Duplex & { readonly bytesRead: number; readonly bytesWritten: number };

/** Returns the error for a server that was silent for too long. */
export function silence(url: string): PostgresError {
  return new PostgresError(`The database ${url} does not answer in time.`);
}

/** Returns the error for the operator. */
export function explain(url: string, error: unknown): PostgresError {
  const advice =
    certificateProblem(error) === undefined
      ? ''
      : ' Give its authority as sslrootcert in the URL, or another sslmode.';
  return new PostgresError(`The database ${url} failed: ${reasonOf(error)}.${advice}`, error);
}

function reasonOf(error: unknown): string {
  // Node tries all addresses of a name, and its error has no message of its own when none of them answered.
  if (error instanceof AggregateError) return [...new Set(error.errors.map(reasonOf))].join(', ');
  return error instanceof Error ? error.message : String(error);
}
