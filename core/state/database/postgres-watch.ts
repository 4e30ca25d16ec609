import { certificateProblem } from '../certificate-problem.ts';
import type { Duplex } from 'node:stream';
import type { PoolClient } from 'pg';
import { PostgresError } from './postgres-error.ts';

/** How often a statement is looked at, in milliseconds. */
const LOOK = 100;

/** Runs a statement, and breaks the connection when nothing moves on it any longer. Nothing less makes a hanging server let go. */
export async function watched<Result>(
  client: PoolClient,
  url: string,
  patience: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Moving } }).connection;
  let moved = stream.bytesRead + stream.bytesWritten;
  // Looks, not time: a gateway that stood still itself must not take the server for gone.
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

/** The server has been silent for too long. */
export function silence(url: string): PostgresError {
  return new PostgresError(`The database ${url} does not answer in time.`);
}

/** What went wrong, for the operator. */
export function explain(url: string, error: unknown): PostgresError {
  const advice =
    certificateProblem(error) === undefined
      ? ''
      : ' Give its authority as sslrootcert in the URL, or another sslmode.';
  return new PostgresError(`The database ${url} failed: ${reasonOf(error)}.${advice}`, error);
}

function reasonOf(error: unknown): string {
  // Node tries all addresses of a name, and says nothing itself when none of them answered.
  if (error instanceof AggregateError) return [...new Set(error.errors.map(reasonOf))].join(', ');
  return error instanceof Error ? error.message : String(error);
}
